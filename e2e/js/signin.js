// Who am I, by the profile in AWS_PROFILE with which a person has signed in.
import { STSClient, GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import { GameLiftClient, ListFleetsCommand } from '@aws-sdk/client-gamelift';

await new GameLiftClient({}).send(new ListFleetsCommand({}));
console.log((await new STSClient({}).send(new GetCallerIdentityCommand({}))).Arn);
