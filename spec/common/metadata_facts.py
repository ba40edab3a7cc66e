"""What Kafka's released jars say of the records of the metadata log; `targets/kafka/metadata_schemas.py` writes it.

A text of this language, and not a file beside it: the package is also used from within an archive.
"""

# ruff: noqa: E501
from typing import Final

JSON: Final = """\
{"release": "4.3.0",
"data": [
  {"name": "RegisterBrokerRecord", "type": 0, "highest": 4, "fields": [
    {"name": "brokerId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "isMigratingZkBroker", "type": "bool", "versions": [2, null], "default": false},
    {"name": "incarnationId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "brokerEpoch", "type": "int64", "versions": [0, null], "default": 0},
    {"name": "endPoints", "type": "struct", "array": true, "versions": [0, null], "structure": "BrokerEndpoint", "default": [], "fields": [
      {"name": "name", "type": "string", "versions": [0, null], "default": ""},
      {"name": "host", "type": "string", "versions": [0, null], "default": ""},
      {"name": "port", "type": "uint16", "versions": [0, null], "default": 0},
      {"name": "securityProtocol", "type": "int16", "versions": [0, null], "default": 0}]},
    {"name": "features", "type": "struct", "array": true, "versions": [0, null], "structure": "BrokerFeature", "default": [], "fields": [
      {"name": "name", "type": "string", "versions": [0, null], "default": ""},
      {"name": "minSupportedVersion", "type": "int16", "versions": [0, null], "default": 0},
      {"name": "maxSupportedVersion", "type": "int16", "versions": [0, null], "default": 0}]},
    {"name": "rack", "type": "string", "versions": [0, null], "nullable": [0, null], "default": ""},
    {"name": "fenced", "type": "bool", "versions": [0, null], "default": true},
    {"name": "inControlledShutdown", "type": "bool", "versions": [1, null], "default": false},
    {"name": "logDirs", "type": "uuid", "array": true, "versions": [3, null], "tag": 0, "default": []},
    {"name": "cordonedLogDirs", "type": "uuid", "array": true, "versions": [4, null], "nullable": [4, null], "tag": 1, "default": null}]},
  {"name": "UnregisterBrokerRecord", "type": 1, "highest": 0, "fields": [
    {"name": "brokerId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "brokerEpoch", "type": "int64", "versions": [0, null], "default": 0}]},
  {"name": "TopicRecord", "type": 2, "highest": 0, "fields": [
    {"name": "name", "type": "string", "versions": [0, null], "default": ""},
    {"name": "topicId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"}]},
  {"name": "PartitionRecord", "type": 3, "highest": 2, "fields": [
    {"name": "partitionId", "type": "int32", "versions": [0, null], "default": -1},
    {"name": "topicId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "replicas", "type": "int32", "array": true, "versions": [0, null], "default": []},
    {"name": "isr", "type": "int32", "array": true, "versions": [0, null], "default": []},
    {"name": "removingReplicas", "type": "int32", "array": true, "versions": [0, null], "default": []},
    {"name": "addingReplicas", "type": "int32", "array": true, "versions": [0, null], "default": []},
    {"name": "leader", "type": "int32", "versions": [0, null], "default": -1},
    {"name": "leaderRecoveryState", "type": "int8", "versions": [0, null], "tag": 0, "default": 0},
    {"name": "leaderEpoch", "type": "int32", "versions": [0, null], "default": -1},
    {"name": "partitionEpoch", "type": "int32", "versions": [0, null], "default": -1},
    {"name": "directories", "type": "uuid", "array": true, "versions": [1, null], "default": []},
    {"name": "eligibleLeaderReplicas", "type": "int32", "array": true, "versions": [2, null], "nullable": [2, null], "tag": 1, "default": null},
    {"name": "lastKnownElr", "type": "int32", "array": true, "versions": [2, null], "nullable": [2, null], "tag": 2, "default": null}]},
  {"name": "ConfigRecord", "type": 4, "highest": 0, "fields": [
    {"name": "resourceType", "type": "int8", "versions": [0, null], "default": 0},
    {"name": "resourceName", "type": "string", "versions": [0, null], "default": ""},
    {"name": "name", "type": "string", "versions": [0, null], "default": ""},
    {"name": "value", "type": "string", "versions": [0, null], "nullable": [0, null], "default": ""}]},
  {"name": "PartitionChangeRecord", "type": 5, "highest": 2, "fields": [
    {"name": "partitionId", "type": "int32", "versions": [0, null], "default": -1},
    {"name": "topicId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "isr", "type": "int32", "array": true, "versions": [0, null], "nullable": [0, null], "tag": 0, "default": null},
    {"name": "leader", "type": "int32", "versions": [0, null], "tag": 1, "default": -2},
    {"name": "replicas", "type": "int32", "array": true, "versions": [0, null], "nullable": [0, null], "tag": 2, "default": null},
    {"name": "removingReplicas", "type": "int32", "array": true, "versions": [0, null], "nullable": [0, null], "tag": 3, "default": null},
    {"name": "addingReplicas", "type": "int32", "array": true, "versions": [0, null], "nullable": [0, null], "tag": 4, "default": null},
    {"name": "leaderRecoveryState", "type": "int8", "versions": [0, null], "tag": 5, "default": -1},
    {"name": "directories", "type": "uuid", "array": true, "versions": [1, null], "nullable": [1, null], "tag": 8, "default": null},
    {"name": "eligibleLeaderReplicas", "type": "int32", "array": true, "versions": [2, null], "nullable": [2, null], "tag": 6, "default": null},
    {"name": "lastKnownElr", "type": "int32", "array": true, "versions": [2, null], "nullable": [2, null], "tag": 7, "default": null}]},
  {"name": "FenceBrokerRecord", "type": 7, "highest": 0, "fields": [
    {"name": "id", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "epoch", "type": "int64", "versions": [0, null], "default": 0}]},
  {"name": "UnfenceBrokerRecord", "type": 8, "highest": 0, "fields": [
    {"name": "id", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "epoch", "type": "int64", "versions": [0, null], "default": 0}]},
  {"name": "RemoveTopicRecord", "type": 9, "highest": 0, "fields": [
    {"name": "topicId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"}]},
  {"name": "DelegationTokenRecord", "type": 10, "highest": 0, "fields": [
    {"name": "owner", "type": "string", "versions": [0, null], "default": ""},
    {"name": "requester", "type": "string", "versions": [0, null], "default": ""},
    {"name": "renewers", "type": "string", "array": true, "versions": [0, null], "default": []},
    {"name": "issueTimestamp", "type": "int64", "versions": [0, null], "default": 0},
    {"name": "maxTimestamp", "type": "int64", "versions": [0, null], "default": 0},
    {"name": "expirationTimestamp", "type": "int64", "versions": [0, null], "default": 0},
    {"name": "tokenId", "type": "string", "versions": [0, null], "default": ""}]},
  {"name": "UserScramCredentialRecord", "type": 11, "highest": 0, "fields": [
    {"name": "name", "type": "string", "versions": [0, null], "default": ""},
    {"name": "mechanism", "type": "int8", "versions": [0, null], "default": 0},
    {"name": "salt", "type": "bytes", "versions": [0, null], "default": ""},
    {"name": "storedKey", "type": "bytes", "versions": [0, null], "default": ""},
    {"name": "serverKey", "type": "bytes", "versions": [0, null], "default": ""},
    {"name": "iterations", "type": "int32", "versions": [0, null], "default": 0}]},
  {"name": "FeatureLevelRecord", "type": 12, "highest": 0, "fields": [
    {"name": "name", "type": "string", "versions": [0, null], "default": ""},
    {"name": "featureLevel", "type": "int16", "versions": [0, null], "default": 0}]},
  {"name": "ClientQuotaRecord", "type": 14, "highest": 0, "fields": [
    {"name": "entity", "type": "struct", "array": true, "versions": [0, null], "structure": "EntityData", "default": [], "fields": [
      {"name": "entityType", "type": "string", "versions": [0, null], "default": ""},
      {"name": "entityName", "type": "string", "versions": [0, null], "nullable": [0, null], "default": ""}]},
    {"name": "key", "type": "string", "versions": [0, null], "default": ""},
    {"name": "value", "type": "float64", "versions": [0, null], "default": 0.0},
    {"name": "remove", "type": "bool", "versions": [0, null], "default": false}]},
  {"name": "ProducerIdsRecord", "type": 15, "highest": 0, "fields": [
    {"name": "brokerId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "brokerEpoch", "type": "int64", "versions": [0, null], "default": -1},
    {"name": "nextProducerId", "type": "int64", "versions": [0, null], "default": 0}]},
  {"name": "BrokerRegistrationChangeRecord", "type": 17, "highest": 3, "fields": [
    {"name": "brokerId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "brokerEpoch", "type": "int64", "versions": [0, null], "default": 0},
    {"name": "fenced", "type": "int8", "versions": [0, null], "tag": 0, "default": 0},
    {"name": "inControlledShutdown", "type": "int8", "versions": [1, null], "tag": 1, "default": 0},
    {"name": "logDirs", "type": "uuid", "array": true, "versions": [2, null], "tag": 2, "default": []},
    {"name": "cordonedLogDirs", "type": "uuid", "array": true, "versions": [3, null], "nullable": [3, null], "tag": 3, "default": null}]},
  {"name": "AccessControlEntryRecord", "type": 18, "highest": 0, "fields": [
    {"name": "id", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "resourceType", "type": "int8", "versions": [0, null], "default": 0},
    {"name": "resourceName", "type": "string", "versions": [0, null], "default": ""},
    {"name": "patternType", "type": "int8", "versions": [0, null], "default": 0},
    {"name": "principal", "type": "string", "versions": [0, null], "default": ""},
    {"name": "host", "type": "string", "versions": [0, null], "default": ""},
    {"name": "operation", "type": "int8", "versions": [0, null], "default": 0},
    {"name": "permissionType", "type": "int8", "versions": [0, null], "default": 0}]},
  {"name": "RemoveAccessControlEntryRecord", "type": 19, "highest": 0, "fields": [
    {"name": "id", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"}]},
  {"name": "NoOpRecord", "type": 20, "highest": 0, "fields": []},
  {"name": "ZkMigrationStateRecord", "type": 21, "highest": 0, "fields": [
    {"name": "zkMigrationState", "type": "int8", "versions": [0, null], "default": 0}]},
  {"name": "RemoveUserScramCredentialRecord", "type": 22, "highest": 0, "fields": [
    {"name": "name", "type": "string", "versions": [0, null], "default": ""},
    {"name": "mechanism", "type": "int8", "versions": [0, null], "default": 0}]},
  {"name": "BeginTransactionRecord", "type": 23, "highest": 0, "fields": [
    {"name": "name", "type": "string", "versions": [0, null], "nullable": [0, null], "tag": 0, "default": null}]},
  {"name": "EndTransactionRecord", "type": 24, "highest": 0, "fields": []},
  {"name": "AbortTransactionRecord", "type": 25, "highest": 0, "fields": [
    {"name": "reason", "type": "string", "versions": [0, null], "nullable": [0, null], "tag": 0, "default": null}]},
  {"name": "RemoveDelegationTokenRecord", "type": 26, "highest": 0, "fields": [
    {"name": "tokenId", "type": "string", "versions": [0, null], "default": ""}]},
  {"name": "RegisterControllerRecord", "type": 27, "highest": 0, "fields": [
    {"name": "controllerId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "incarnationId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
    {"name": "zkMigrationReady", "type": "bool", "versions": [0, null], "default": false},
    {"name": "endPoints", "type": "struct", "array": true, "versions": [0, null], "structure": "ControllerEndpoint", "default": [], "fields": [
      {"name": "name", "type": "string", "versions": [0, null], "default": ""},
      {"name": "host", "type": "string", "versions": [0, null], "default": ""},
      {"name": "port", "type": "uint16", "versions": [0, null], "default": 0},
      {"name": "securityProtocol", "type": "int16", "versions": [0, null], "default": 0}]},
    {"name": "features", "type": "struct", "array": true, "versions": [0, null], "structure": "ControllerFeature", "default": [], "fields": [
      {"name": "name", "type": "string", "versions": [0, null], "default": ""},
      {"name": "minSupportedVersion", "type": "int16", "versions": [0, null], "default": 0},
      {"name": "maxSupportedVersion", "type": "int16", "versions": [0, null], "default": 0}]}]},
  {"name": "ClearElrRecord", "type": 28, "highest": 0, "fields": [
    {"name": "topicName", "type": "string", "versions": [0, null], "default": ""}]}],
"control": [
  {"name": "LeaderChangeMessage", "type": 2, "highest": 1, "fields": [
    {"name": "version", "type": "int16", "versions": [0, null], "default": 0},
    {"name": "leaderId", "type": "int32", "versions": [0, null], "default": 0},
    {"name": "voters", "type": "struct", "array": true, "versions": [0, null], "structure": "Voter", "default": [], "fields": [
      {"name": "voterId", "type": "int32", "versions": [0, null], "default": 0},
      {"name": "voterDirectoryId", "type": "uuid", "versions": [1, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"}]},
    {"name": "grantingVoters", "type": "struct", "array": true, "versions": [0, null], "structure": "Voter", "default": [], "fields": [
      {"name": "voterId", "type": "int32", "versions": [0, null], "default": 0},
      {"name": "voterDirectoryId", "type": "uuid", "versions": [1, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"}]}]},
  {"name": "SnapshotHeaderRecord", "type": 3, "highest": 0, "fields": [
    {"name": "version", "type": "int16", "versions": [0, null], "default": 0},
    {"name": "lastContainedLogTimestamp", "type": "int64", "versions": [0, null], "default": 0}]},
  {"name": "SnapshotFooterRecord", "type": 4, "highest": 0, "fields": [
    {"name": "version", "type": "int16", "versions": [0, null], "default": 0}]},
  {"name": "KRaftVersionRecord", "type": 5, "highest": 0, "fields": [
    {"name": "version", "type": "int16", "versions": [0, null], "default": 0},
    {"name": "kRaftVersion", "type": "int16", "versions": [0, null], "default": 0}]},
  {"name": "VotersRecord", "type": 6, "highest": 0, "fields": [
    {"name": "version", "type": "int16", "versions": [0, null], "default": 0},
    {"name": "voters", "type": "struct", "array": true, "versions": [0, null], "structure": "Voter", "default": [], "fields": [
      {"name": "voterId", "type": "int32", "versions": [0, null], "default": 0},
      {"name": "voterDirectoryId", "type": "uuid", "versions": [0, null], "default": "AAAAAAAAAAAAAAAAAAAAAA"},
      {"name": "endpoints", "type": "struct", "array": true, "versions": [0, null], "structure": "Endpoint", "default": [], "fields": [
        {"name": "name", "type": "string", "versions": [0, null], "default": ""},
        {"name": "host", "type": "string", "versions": [0, null], "default": ""},
        {"name": "port", "type": "uint16", "versions": [0, null], "default": 0}]},
      {"name": "kRaftVersionFeature", "type": "struct", "versions": [0, null], "structure": "KRaftVersionFeature", "fields": [
        {"name": "minSupportedVersion", "type": "int16", "versions": [0, null], "default": 0},
        {"name": "maxSupportedVersion", "type": "int16", "versions": [0, null], "default": 0}]}]}]}]}
"""
