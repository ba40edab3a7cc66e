from kafkaspec.contract.project import extend

extend(__name__, __path__)
