"""Many seeds on many cores: campaigns in this process or on Spark, with the same results."""

from kafkaspec.fleet.campaign import CampaignResult, Failure, campaign

__all__ = ["CampaignResult", "Failure", "campaign"]
