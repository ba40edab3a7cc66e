"""Many seeds on many cores: campaigns in this process or on Spark, with the same results."""
