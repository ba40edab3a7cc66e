#!/bin/sh
# Apache Kafka as a target of the judge: kafka.sh [4.3|3.9|3.0|2.8], built by `make kafka-target`.
here=$(cd "$(dirname "$0")" && pwd)
line=${1:-4.3}
module=$here/kafka-$line/target
[ -d "$module/lib" ] || { echo "kafka.sh: $module/lib is not there: make kafka-target" >&2; exit 3; }
# C1 alone: C2 costs more than it saves in campaigns of less than millions of calls (bench/results/2026-11-28-log.md)
exec java -Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss2m -Dorg.slf4j.simpleLogger.defaultLogLevel=off \
    -cp "$module/classes:$module/lib/*" kafkaspec.target.Main
