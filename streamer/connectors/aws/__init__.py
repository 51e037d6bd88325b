"""AWS: the fields of its components, clients by boto3, and outputs that send records together."""
