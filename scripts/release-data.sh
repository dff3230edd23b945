#!/usr/bin/env bash
# Makes the data directory of a release that later releases must be able to open: scripts/release-data.sh 0.1.0 BIN
# The directory BIN has the muster and the arena-server of that release. The service is killed, not stopped, so that its journal is replayed.
# The result is internal/service/testdata/releases/VERSION.tar.gz; TestDataOfReleases opens it and checks its content.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: release-data.sh VERSION BIN}
bin=$(realpath "${2:?usage: release-data.sh VERSION BIN}")
work=$(mktemp -d)
address=127.0.0.1:11801
started=()
end() {
	for id in "${started[@]}"; do kill -9 "$id" 2>/dev/null || true; done
	rm -rf "$work"
}
trap end EXIT

start() { "$@" >>"$work/log" 2>&1 & started+=($!); }
until_true() { for _ in $(seq 300); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.1; done; echo "in vain: $*" >&2; tail "$work/log" >&2; exit 1; }
gl() { curl -sS --fail-with-body "http://$address/" -H "X-Amz-Target: GameLift.$1" -H 'Content-Type: application/x-amz-json-1.1' -d "$2"; }
player() { curl -sS --fail-with-body "http://$address/playerflow/v1/player/$1" -H "Authorization: Bearer $2" -H 'Content-Type: application/json' -d "$3"; }
has() { [[ $(gl "$1" "$2" | jq -r "$3") == "$4" ]]; }

start "$bin/muster" serve --dev --player-flow --data "$work/data" --listen $address
service=${started[0]}
until_true curl -sf http://$address/healthz

gl CreateLocation '{"LocationName": "custom-berlin"}' >/dev/null
gl CreateLocation '{"LocationName": "custom-paris"}' >/dev/null
fleet=$(gl CreateFleet '{"Name": "live", "ComputeType": "ANYWHERE", "Locations": [{"Location": "custom-berlin"}, {"Location": "custom-paris"}],
	"Tags": [{"Key": "stage", "Value": "live"}]}' | jq -r .FleetAttributes.FleetId)
alias=$(gl CreateAlias "{\"Name\": \"stable\", \"RoutingStrategy\": {\"Type\": \"SIMPLE\", \"FleetId\": \"$fleet\"}}" | jq -r .Alias.AliasId)
gl CreateGameSessionQueue "{\"Name\": \"europe\", \"TimeoutInSeconds\": 600, \"CustomEventData\": \"eu\",
	\"Destinations\": [{\"DestinationArn\": \"arn:aws:gamelift:us-east-1::alias/$alias\"}]}" >/dev/null
rules='{"name": "duel", "ruleLanguageVersion": "1.0", "playerAttributes": [{"name": "skill", "type": "number", "default": 10}],
	"teams": [{"name": "red", "minPlayers": 1, "maxPlayers": 1}, {"name": "blue", "minPlayers": 1, "maxPlayers": 1}],
	"rules": [{"name": "near", "type": "distance", "measurements": ["avg(teams[red].players.attributes[skill])"],
		"referenceValue": "avg(teams[blue].players.attributes[skill])", "maxDistance": 5}]}'
gl CreateMatchmakingRuleSet "$(jq -n --arg rules "$rules" '{Name: "duel", RuleSetBody: $rules}')" >/dev/null
gl CreateMatchmakingConfiguration '{"Name": "ranked", "RuleSetName": "duel", "RequestTimeoutSeconds": 43200, "AcceptanceRequired": false,
	"GameSessionQueueArns": ["arn:aws:gamelift:us-east-1:000000000000:gamesessionqueue/europe"]}' >/dev/null

gl RegisterCompute "{\"FleetId\": \"$fleet\", \"ComputeName\": \"berlin-1\", \"IpAddress\": \"127.0.0.1\", \"Location\": \"custom-berlin\"}" >/dev/null
token=$(gl GetComputeAuthToken "{\"FleetId\": \"$fleet\", \"ComputeName\": \"berlin-1\"}" | jq -r .AuthToken)
for port in 7601 7602; do
	start "$bin/arena-server" -fleetid="$fleet" -hostid=berlin-1 -authtoken="$token" -websocketurl=ws://$address -port $port
done
begin() { gl CreateGameSession "{\"FleetId\": \"$fleet\", \"Location\": \"custom-berlin\", \"MaximumPlayerSessionCount\": 4, \"Name\": \"ended\",
	\"IdempotencyToken\": \"first-game\", \"GameProperties\": [{\"Key\": \"map\", \"Value\": \"desert\"}]}"; }
until_true begin
ended=$(begin | jq -r .GameSession.GameSessionId)
until_true has DescribeGameSessions "{\"GameSessionId\": \"$ended\"}" '.GameSessions[0].Status' ACTIVE
gl CreatePlayerSession "{\"GameSessionId\": \"$ended\", \"PlayerId\": \"ann\", \"PlayerData\": \"veteran\"}" >/dev/null
gl TerminateGameSession "{\"GameSessionId\": \"$ended\", \"TerminationMode\": \"TRIGGER_ON_PROCESS_TERMINATE\"}" >/dev/null
until_true has DescribeGameSessions "{\"GameSessionId\": \"$ended\"}" '.GameSessions[0].Status' TERMINATED

gl StartGameSessionPlacement '{"PlacementId": "placed", "GameSessionQueueName": "europe", "MaximumPlayerSessionCount": 4, "GameSessionName": "running",
	"DesiredPlayerSessions": [{"PlayerId": "bob"}]}' >/dev/null
until_true has DescribeGameSessionPlacement '{"PlacementId": "placed"}' .GameSessionPlacement.Status FULFILLED
gl StartGameSessionPlacement '{"PlacementId": "stopped", "GameSessionQueueName": "europe", "MaximumPlayerSessionCount": 4}' >/dev/null
gl StopGameSessionPlacement '{"PlacementId": "stopped"}' >/dev/null
ticket() { gl StartMatchmaking "{\"ConfigurationName\": \"ranked\", \"TicketId\": \"$1\", \"Players\": [{\"PlayerId\": \"$2\", \"PlayerAttributes\": {\"skill\": {\"N\": $3}}}]}" >/dev/null; }
ticket waiting cem 30
ticket gone dee 80
gl StopMatchmaking '{"TicketId": "gone"}' >/dev/null

login() { player Session.Login none "{\"provider\": \"dev\", \"token\": \"{\\\"player_id\\\": \\\"$1\\\"}\"}" | jq -r .access_token; }
eve=$(login eve) fay=$(login fay)
code=$(player Party.CreateParty "$eve" '{"attributes": {"mode": "duo"}}' | jq -r .party.invite_code)
player Party.JoinPartyByInviteCode "$fay" "{\"code\": \"$code\"}" >/dev/null

"$bin/muster" keys create --data "$work/data" --role admin --name ops >/dev/null
"$bin/muster" keys create --data "$work/data" --role backend --name revoked >"$work/key"
"$bin/muster" keys revoke --data "$work/data" "$(sed -n 's/access key id *//p' "$work/key")" >/dev/null

sleep 25 # ended records move from memory to the archive, after --ended-linger
kill -9 "$service"
wait "$service" 2>/dev/null || true
(cd "$work/data" && rm -rf service.json dev-ca* cell.secret.lock && find . -name 'LOCK*' -delete)
mkdir -p internal/service/testdata/releases
tar --sort=name --owner=0 --group=0 --numeric-owner -cf - -C "$work/data" . | gzip -9n >"internal/service/testdata/releases/$version.tar.gz"
ls -l "internal/service/testdata/releases/$version.tar.gz"
