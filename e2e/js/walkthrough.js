// The operations around game sessions and their players, and their errors, through the current AWS SDK for JavaScript, which speaks
// AWS JSON. The service is at MUSTER_URL; ARENA_SERVER is the example game server's binary, ARENA_CLIENT a player's.

import assert from 'node:assert/strict';
import * as gl from '@aws-sdk/client-gamelift';
import { STSClient, GetCallerIdentityCommand } from '@aws-sdk/client-sts';
import { call, client, options, refused, start, step, until, url } from './client.js';

const location = 'custom-home';

await step('sts GetCallerIdentity', async () => {
  const who = await new STSClient(options).send(new GetCallerIdentityCommand({}));
  assert.match(who.Account, /^\d{12}$/);
  assert(who.Arn);
});

// Locations and fleets.

const locationArn = await step('CreateLocation', async () => {
  const { Location } = await call('CreateLocation', { LocationName: location, Tags: [{ Key: 'room', Value: 'cellar' }] });
  assert.equal(Location.LocationName, location);
  return Location.LocationArn;
});
await refused('ConflictException', 'CreateLocation', { LocationName: location }, location);
await refused('InvalidRequestException', 'CreateLocation', { LocationName: 'custom-a b' }, 'LocationName');
await step('CreateLocation, a second one', () => call('CreateLocation', { LocationName: 'custom-attic' }));
await step('ListLocations, in pages', async () => {
  const names = [];
  for await (const page of gl.paginateListLocations({ client, pageSize: 1 }, { Filters: ['CUSTOM'] })) {
    assert(page.Locations.length <= 1);
    names.push(...page.Locations.map((l) => l.LocationName));
  }
  assert.deepEqual(names.filter((name) => ['custom-attic', location].includes(name)).sort(), ['custom-attic', location]);
});

const fleet = await step('CreateFleet', async () => {
  const out = await call('CreateFleet', {
    Name: 'dev', ComputeType: 'ANYWHERE', Locations: [{ Location: location }],
    NewGameSessionProtectionPolicy: 'NoProtection',
    ResourceCreationLimitPolicy: { NewGameSessionsPerCreator: 2, PolicyPeriodInMinutes: 10 },
  });
  assert.equal(out.FleetAttributes.Status, 'ACTIVE');
  assert.match(out.FleetAttributes.FleetId, /^fleet-[0-9a-f-]{36}$/);
  assert(out.FleetAttributes.CreationTime instanceof Date);
  assert.deepEqual(out.LocationStates, [{ Location: location, Status: 'ACTIVE' }]);
  return out.FleetAttributes;
});
const FleetId = fleet.FleetId;
const noFleet = 'fleet-00000000-0000-0000-0000-000000000000';
await refused('InvalidRequestException', 'CreateFleet', { Name: '', ComputeType: 'ANYWHERE', Locations: [{ Location: location }] }, 'Name');
await refused('InvalidRequestException', 'CreateFleet', { Name: 'managed', ComputeType: 'EC2' });
await refused('InvalidRequestException', 'DeleteLocation', { LocationName: location });
await step('CreateFleetLocations', () => call('CreateFleetLocations', { FleetId, Locations: [{ Location: 'custom-attic' }] }));
await refused('ConflictException', 'CreateFleetLocations', { FleetId, Locations: [{ Location: 'custom-attic' }] });
await step('DescribeFleetLocationAttributes', async () => {
  const out = await call('DescribeFleetLocationAttributes', { FleetId });
  assert.equal(out.LocationAttributes.length, 2);
});
await step('DescribeFleetLocationCapacity', async () => {
  const out = await call('DescribeFleetLocationCapacity', { FleetId, Location: location });
  assert.equal(out.FleetCapacity.Location, location);
});
await step('DescribeFleetLocationUtilization', async () => {
  const out = await call('DescribeFleetLocationUtilization', { FleetId, Location: location });
  assert.equal(out.FleetUtilization.ActiveGameSessionCount, 0);
});
await step('DeleteFleetLocations', () => call('DeleteFleetLocations', { FleetId, Locations: ['custom-attic'] }));
await step('UpdateFleetAttributes', async () => {
  await call('UpdateFleetAttributes', { FleetId: fleet.FleetArn, Description: 'for developers' });
  const out = await call('DescribeFleetAttributes', { FleetIds: [FleetId] });
  assert.equal(out.FleetAttributes[0].Description, 'for developers');
  assert.equal(out.FleetAttributes[0].Name, 'dev');
});
await step('ListFleets', async () => assert((await call('ListFleets')).FleetIds.includes(FleetId)));
await refused('NotFoundException', 'UpdateFleetAttributes', { FleetId: noFleet, Name: 'x' });
for (const operation of ['DescribeFleetCapacity', 'DescribeFleetUtilization']) {
  await step(operation, async () => {
    const out = await call(operation, { FleetIds: [FleetId] });
    assert.equal(out[operation.replace('Describe', '')][0].FleetId, FleetId);
  });
}

// Computes.

await step('RegisterCompute', async () => {
  const { Compute } = await call('RegisterCompute', {
    FleetId, ComputeName: 'DesktopPC', IpAddress: '127.0.0.1', Location: location, DnsName: 'desktop.example',
  });
  assert.equal(Compute.ComputeStatus, 'Active');
  assert.equal(Compute.DnsName, 'desktop.example');
  assert.equal(Compute.GameLiftServiceSdkEndpoint, url.replace('http', 'ws'));
  assert(Compute.GameLiftAgentEndpoint);
});
await refused('InvalidRequestException', 'RegisterCompute', { FleetId, ComputeName: 'PC2', IpAddress: '127.0.0.1', Location: 'custom-attic' });
await refused('InvalidRequestException', 'RegisterCompute', { FleetId, ComputeName: 'a/b/c', IpAddress: '127.0.0.1', Location: location }, 'ComputeName');
await step('DescribeCompute', async () => {
  const { Compute } = await call('DescribeCompute', { FleetId, ComputeName: 'DesktopPC' });
  assert.equal(Compute.Location, location);
});
await refused('NotFoundException', 'DescribeCompute', { FleetId, ComputeName: 'nobody' });
await step('ListCompute', async () => assert.equal((await call('ListCompute', { FleetId, Location: location })).ComputeList.length, 1));
await refused('InvalidRequestException', 'ListCompute', { FleetId, NextToken: 'made-up' }, 'NextToken');
const token = await step('GetComputeAuthToken', async () => {
  const out = await call('GetComputeAuthToken', { FleetId, ComputeName: 'DesktopPC' });
  assert.match(out.AuthToken, /^[a-zA-Z0-9-]{1,64}$/);
  assert(out.ExpirationTimestamp > new Date());
  return out.AuthToken;
});
await refused('NotFoundException', 'GetComputeAuthToken', { FleetId, ComputeName: 'nobody' });

// Game sessions.

const wanted = { FleetId, Location: location, MaximumPlayerSessionCount: 3, Name: 'Debug', CreatorId: 'js', IdempotencyToken: 'token-1' };
await refused('FleetCapacityExceededException', 'CreateGameSession', wanted, FleetId);
await refused('InvalidRequestException', 'CreateGameSession', { FleetId, Location: location, MaximumPlayerSessionCount: 3 }, 'CreatorId');

const server = start(process.env.ARENA_SERVER, [
  `-authtoken=${token}`, '-hostid=DesktopPC', `-fleetid=${FleetId}`, `-websocketurl=${url.replace('http', 'ws')}`,
  '-port', '0', '-bind', '127.0.0.1',
], { HEALTHCHECK_INTERVAL: '1s', HEALTHCHECK_MAX_JITTER: '1ms' });
await step('a game server connects', () => server.line('ready for a game session'));

const session = await step('CreateGameSession', () => until('a free process', async () => {
  try {
    return (await call('CreateGameSession', {
      ...wanted, GameProperties: [{ Key: 'size', Value: '12x6' }], GameSessionData: 'data',
    })).GameSession;
  } catch (error) {
    if (error.name === 'FleetCapacityExceededException') return undefined;
    throw error;
  }
}));
const GameSessionId = session.GameSessionId;
await step('the game session is as asked for', () => {
  assert.equal(GameSessionId, `arn:aws:gamelift:us-east-1::gamesession/${FleetId}/${location}/token-1`);
  assert.equal(session.Status, 'ACTIVATING');
  assert.equal(session.CreatorId, 'js');
  assert.equal(session.GameSessionData, 'data');
  assert.deepEqual(session.GameProperties, [{ Key: 'size', Value: '12x6' }]);
});
await refused('IdempotentParameterMismatchException', 'CreateGameSession', { ...wanted, Name: 'Other' });
const active = await step('the game session becomes ACTIVE', () => until('ACTIVE', async () => {
  const [gs] = (await call('DescribeGameSessions', { GameSessionId })).GameSessions;
  return gs.Status === 'ACTIVE' && gs;
}));
await refused('NotFoundException', 'DescribeGameSessions', { GameSessionId: `${GameSessionId}x` });
await refused('InvalidRequestException', 'DescribeGameSessions', {});
await step('DescribeGameSessions by fleet and status', async () => {
  const of = async (StatusFilter) => (await call('DescribeGameSessions', { FleetId, StatusFilter })).GameSessions.length;
  assert.deepEqual([await of('ACTIVE'), await of('TERMINATED'), await of(undefined)], [1, 0, 1]);
});
await step('UpdateGameSession', async () => {
  const { GameSession } = await call('UpdateGameSession', {
    GameSessionId, Name: 'Renamed', ProtectionPolicy: 'FullProtection', GameProperties: [{ Key: 'mode', Value: 'duel' }],
  });
  assert.equal(GameSession.Name, 'Renamed');
  assert.equal(GameSession.GameProperties.length, 2);
});
await refused('InvalidRequestException', 'UpdateGameSession', { GameSessionId, MaximumPlayerSessionCount: 201 }, 'MaximumPlayerSessionCount');
await step('DescribeGameSessionDetails', async () => {
  const [details] = (await call('DescribeGameSessionDetails', { GameSessionId })).GameSessionDetails;
  assert.equal(details.ProtectionPolicy, 'FullProtection');
  assert.equal(details.GameSession.Name, 'Renamed');
});
await step('SearchGameSessions', async () => {
  const found = async (FilterExpression, SortExpression) => (await call('SearchGameSessions', { FleetId, FilterExpression, SortExpression })).GameSessions.map((g) => g.Name);
  assert.deepEqual(await found("gameSessionProperties.mode = 'duel' AND hasAvailablePlayerSessions=true", 'creationTimeMillis DESC'), ['Renamed']);
  assert.deepEqual(await found("gameSessionProperties.mode = 'race'"), []);
});
await refused('InvalidRequestException', 'SearchGameSessions', { FleetId, FilterExpression: 'gameSessionProperties.mode = "duel"' }, 'character 30');

// Players.

const one = await step('CreatePlayerSession', async () => {
  const { PlayerSession } = await call('CreatePlayerSession', { GameSessionId, PlayerId: 'PlayerOne', PlayerData: 'blue' });
  assert.equal(PlayerSession.Status, 'RESERVED');
  assert.equal(PlayerSession.Port, active.Port);
  assert.match(PlayerSession.PlayerSessionId, /^psess-[0-9a-f-]{36}$/);
  return PlayerSession;
});
await step('CreatePlayerSessions', async () => {
  const { PlayerSessions } = await call('CreatePlayerSessions', { GameSessionId, PlayerIds: ['Two', 'Three'], PlayerDataMap: { Two: 'red' } });
  assert.deepEqual(PlayerSessions.map((p) => [p.PlayerId, p.PlayerData]), [['Two', 'red'], ['Three', undefined]]);
});
await refused('GameSessionFullException', 'CreatePlayerSession', { GameSessionId, PlayerId: 'Four' });
await refused('InvalidRequestException', 'CreatePlayerSession', { GameSessionId, PlayerId: '' }, 'PlayerId');
await refused('NotFoundException', 'CreatePlayerSession', { GameSessionId: `${GameSessionId}x`, PlayerId: 'Four' });
await refused('InvalidRequestException', 'DescribePlayerSessions', {});

const player = start(process.env.ARENA_CLIENT, [
  '-address', `127.0.0.1:${one.Port}`, '-player-session', one.PlayerSessionId, '-name', 'Ann', '-script', 'say hello; wait said Ann; wait over',
]);
await step('a player joins', () => player.line('welcome Ann 12x6'));
await step('where is my friend?', async () => {
  const { PlayerSessions } = await call('DescribePlayerSessions', { PlayerId: 'PlayerOne' });
  assert.deepEqual(PlayerSessions.map((p) => [p.PlayerSessionId, p.Status, p.GameSessionId]), [[one.PlayerSessionId, 'ACTIVE', GameSessionId]]);
});
await step('DescribePlayerSessions in pages', async () => {
  const ids = [];
  for await (const page of gl.paginateDescribePlayerSessions({ client, pageSize: 2 }, { GameSessionId })) {
    ids.push(...page.PlayerSessions.map((p) => p.PlayerId));
  }
  assert.deepEqual(ids.sort(), ['PlayerOne', 'Three', 'Two']);
});
await step('places are counted', async () => {
  const [gs] = (await call('DescribeGameSessions', { GameSessionId })).GameSessions;
  assert.equal(gs.CurrentPlayerSessionCount, 3);
});

// The end.

await refused('InvalidRequestException', 'TerminateGameSession', { GameSessionId, TerminationMode: 'FORCE_TERMINATE' });
await refused('InvalidRequestException', 'TerminateGameSession', { GameSessionId, TerminationMode: 'GENTLY' }, 'TerminationMode');
await step('TerminateGameSession', async () => {
  const { GameSession } = await call('TerminateGameSession', { GameSessionId, TerminationMode: 'TRIGGER_ON_PROCESS_TERMINATE' });
  assert.equal(GameSession.Status, 'TERMINATING');
  assert.equal((await server.exit)[0], 0);
  assert.equal((await player.exit)[0], 0);
});
await step('the game session is TERMINATED', () => until('TERMINATED', async () => {
  const [gs] = (await call('DescribeGameSessions', { GameSessionId })).GameSessions;
  return gs.Status === 'TERMINATED' && gs.StatusReason === 'TRIGGERED_ON_PROCESS_TERMINATE' && gs.TerminationTime instanceof Date;
}));
await refused('InvalidGameSessionStatusException', 'TerminateGameSession', { GameSessionId, TerminationMode: 'TRIGGER_ON_PROCESS_TERMINATE' });
await refused('InvalidGameSessionStatusException', 'CreatePlayerSession', { GameSessionId, PlayerId: 'Late' });
await step('its players have ended', async () => {
  const { PlayerSessions } = await call('DescribePlayerSessions', { GameSessionId });
  const ended = PlayerSessions.map((p) => `${p.PlayerId} ${p.Status}`).sort(); // all are of one moment
  assert.deepEqual(ended, ['PlayerOne COMPLETED', 'Three TIMEDOUT', 'Two TIMEDOUT']);
});
await step('DescribeFleetEvents', async () => {
  const codes = (await call('DescribeFleetEvents', { FleetId })).Events.map((e) => e.EventCode);
  assert(codes.includes('FLEET_CREATED'), codes.join());
});

// Tags.

await step('TagResource, UntagResource, ListTagsForResource', async () => {
  await call('TagResource', { ResourceARN: fleet.FleetArn, Tags: [{ Key: 'team', Value: 'red' }, { Key: 'stage', Value: 'test' }] });
  await call('UntagResource', { ResourceARN: fleet.FleetArn, TagKeys: ['stage'] });
  assert.deepEqual((await call('ListTagsForResource', { ResourceARN: fleet.FleetArn })).Tags, [{ Key: 'team', Value: 'red' }]);
  assert.deepEqual((await call('ListTagsForResource', { ResourceARN: locationArn })).Tags, [{ Key: 'room', Value: 'cellar' }]);
});
await refused('NotFoundException', 'TagResource', { ResourceARN: `${fleet.FleetArn.slice(0, -1)}x`, Tags: [] });

await step('DeregisterCompute', () => call('DeregisterCompute', { FleetId, ComputeName: 'DesktopPC' }));
await refused('NotFoundException', 'DeregisterCompute', { FleetId, ComputeName: 'DesktopPC' });
await step('DeleteFleet', async () => {
  await call('DeleteFleet', { FleetId });
  await until('the fleet to be gone', async () => !(await call('ListFleets')).FleetIds.includes(FleetId));
});
await refused('NotFoundException', 'DeleteFleet', { FleetId });
await step('DeleteLocation', () => call('DeleteLocation', { LocationName: location }));
await refused('NotFoundException', 'DeleteLocation', { LocationName: location });
