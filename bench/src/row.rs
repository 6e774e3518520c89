//! A result.

use serde_json::{Map, Value, json};

/// What a result's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Microseconds,
    Milliseconds,
    PerSecond,
    BytesPerSecond,
    Percent,
}

impl Unit {
    /// As it ends a key.
    const fn key(self) -> &'static str {
        match self {
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::PerSecond => "per_s",
            Self::BytesPerSecond => "bytes_per_s",
            Self::Percent => "percent",
        }
    }

    /// Whether more is better: of times and loads it is not.
    const fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::BytesPerSecond)
    }

    /// As people read it: a factor and a name.
    pub(crate) const fn shown(self) -> (f64, &'static str) {
        match self {
            Self::Microseconds => (1.0, "us"),
            Self::Milliseconds => (1.0, "ms"),
            Self::PerSecond => (1e-6, "M/s"),
            Self::BytesPerSecond => (1e-6, "MB/s"),
            Self::Percent => (1.0, "%"),
        }
    }
}

/// Median, least and most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Statistics {
    /// Of these values; zeros if there are none.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self {
                median: 0.0,
                min: 0.0,
                max: 0.0,
            };
        };
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Self { median, min, max }
    }
}

/// How a device program was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// The layout; empty where none plays a part.
    pub(crate) layout: &'static str,
    pub(crate) ports: u32,
    pub(crate) server_threads: u32,
    pub(crate) poll: &'static str,
}

/// What a result is compared to in its own run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// To what.
    pub(crate) to: &'static str,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) workload: &'static str,
    pub(crate) served: Served,
    pub(crate) warps: u32,
    pub(crate) lanes: u32,
    /// Bytes of a message, each way.
    pub(crate) bytes: u64,
    /// Calls of each warp in a repetition.
    pub(crate) calls: u64,
    pub(crate) unit: Unit,
    /// One for each repetition.
    pub(crate) values: Vec<f64>,
    pub(crate) ratio: Option<Ratio>,
    /// Calls of all warps in a second, where `unit` is the time of one.
    pub(crate) rate: Option<f64>,
}

impl Row {
    /// The result as a JSON object, `common` before it.
    pub(crate) fn json(&self, common: &Map<String, Value>) -> Value {
        let statistics = Statistics::of(&self.values);
        let unit = self.unit.key();
        let mut object = common.clone();
        let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
        add("workload", json!(self.workload));
        add("layout", json!(self.served.layout));
        add("warps", json!(self.warps));
        add("lanes", json!(self.lanes));
        add("bytes", json!(self.bytes));
        add("ports", json!(self.served.ports));
        add("server_threads", json!(self.served.server_threads));
        add("poll", json!(self.served.poll));
        add("calls", json!(self.calls));
        add("repetitions", json!(self.values.len()));
        add(&format!("median_{unit}"), json!(statistics.median));
        add(&format!("min_{unit}"), json!(statistics.min));
        add(&format!("max_{unit}"), json!(statistics.max));
        if let Some(rate) = self.rate {
            add("rate_per_s", json!(rate));
        }
        add("ratio", json!(self.ratio.map(|ratio| ratio.value)));
        add("ratio_to", json!(self.ratio.map(|ratio| ratio.to)));
        let better = if self.unit.more_is_better() {
            "higher"
        } else {
            "lower"
        };
        add("better", json!(better));
        Value::Object(object)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(values: &[f64], unit: Unit) -> Row {
        Row {
            workload: "increment",
            served: Served {
                layout: "line",
                ports: 8,
                server_threads: 2,
                poll: "adaptive",
            },
            warps: 132,
            lanes: 32,
            bytes: 8,
            calls: 100,
            unit,
            values: values.to_vec(),
            ratio: Some(Ratio {
                value: 1.5,
                to: "floor",
            }),
            rate: Some(2.0),
        }
    }

    #[test]
    fn medians() {
        let is = |values: &[f64], median: f64| {
            (Statistics::of(values).median - median).abs() < f64::EPSILON
        };
        assert!(is(&[3.0, 1.0, 2.0], 2.0));
        assert!(is(&[4.0, 1.0, 2.0, 3.0], 2.5));
        assert!(is(&[], 0.0));
        let all = Statistics::of(&[3.0, 1.0]);
        assert!(all.min < 1.5 && all.max > 2.5);
    }

    #[test]
    fn keys_name_their_unit() {
        let mut common = Map::new();
        common.insert("device".into(), json!("a device"));
        let json = row(&[2.0, 1.0, 4.0], Unit::Microseconds).json(&common);
        assert_eq!(json["median_us"], 2.0);
        assert_eq!(json["min_us"], 1.0);
        assert_eq!(json["max_us"], 4.0);
        assert_eq!(json["repetitions"], 3);
        assert_eq!(json["device"], "a device");
        assert_eq!(
            (&json["ratio"], &json["better"]),
            (&json!(1.5), &json!("lower"))
        );
        let json = row(&[2.0], Unit::BytesPerSecond).json(&Map::new());
        assert_eq!(
            (&json["median_bytes_per_s"], &json["better"]),
            (&json!(2.0), &json!("higher"))
        );
    }
}
