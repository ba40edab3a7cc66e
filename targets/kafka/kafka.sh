#!/bin/sh
# Apache Kafka as a target of the judge: kafka.sh [4.3|3.9|3.0|2.8], built by `make kafka-target`.
here=$(cd "$(dirname "$0")" && pwd)
line=${1:-4.3}
module=$here/kafka-$line/target
[ -d "$module/lib" ] || { echo "kafka.sh: $module/lib is not there: make kafka-target" >&2; exit 3; }
# C1 alone: in campaigns of 150,000 calls of log, timeline and leader epochs C2 costs as much as it saves, in shorter ones
# more (bench/results/2026-11-28-log.md)
exec java -Xshare:auto -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss2m -Dorg.slf4j.simpleLogger.defaultLogLevel=off \
    -cp "$module/classes:$module/lib/*" kafkaspec.target.Main
