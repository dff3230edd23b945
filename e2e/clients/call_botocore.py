# Calls the service with botocore: a line of the standard input is a call, a line of the output its answer; clients_test.go says what is in them.
import json, sys

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

# The service judges the input, not the client.
config = Config(retries={'max_attempts': 0}, parameter_validation=False)
client = botocore.session.get_session().create_client('gamelift', config=config)
for line in sys.stdin:
    call = json.loads(line)
    result = {}
    try:
        result['Answer'] = client._make_api_call(call['Operation'], call['Input'])
    except ClientError as error:
        # An error of the model has a class of its own; all others are a ClientError.
        result = {'Code': type(error).__name__, 'Message': error.response['Error']['Message']}
    print(json.dumps(result, default=lambda time: time.timestamp()), flush=True)
