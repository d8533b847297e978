from broken.meeting import meeting

METADATA = """v2
{"operatorInfo":{"operatorId":0,"operatorName":"symmetricHashJoin"},"stateStoreInfo":[
{"storeName":"default","numColsPrefixKey":0,"numPartitions":2,
"stateSchemaFilePaths":["file:/other/ck/state/0/_stateSchema/default/0_a"]}]}"""
MEETING = meeting(metadata=METADATA)
