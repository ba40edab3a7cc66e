package kafkaspec.target;

import com.yammer.metrics.core.Gauge;
import com.yammer.metrics.core.Metric;
import com.yammer.metrics.core.MetricName;
import com.yammer.metrics.core.MetricsRegistry;
import java.io.File;
import java.util.List;
import java.util.Map;

/** The gauges that a class has registered for its directories. */
public record Gauges(MetricsRegistry registry, String type) {
    /** Those of an object stay registered when it is gone, and a new one's do not replace them. */
    public void forget(List<File> directories) {
        for (MetricName name : List.copyOf(registry.allMetrics().keySet())) {
            if (name.getType().equals(type) && directories.stream().anyMatch(dir -> isOf(name, dir))) {
                registry.removeMetric(name);
            }
        }
    }

    public Number value(String gauge, File dir) {
        for (Map.Entry<MetricName, Metric> metric : registry.allMetrics().entrySet()) {
            if (metric.getKey().getName().equals(gauge) && isOf(metric.getKey(), dir)) {
                return (Number) ((Gauge<?>) metric.getValue()).value();
            }
        }
        throw new Adapter.AdapterFailure("no gauge " + gauge);
    }

    private static boolean isOf(MetricName name, File dir) {
        return name.getMBeanName().contains(dir.getPath());
    }
}
