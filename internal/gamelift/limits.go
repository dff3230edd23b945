package gamelift

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/musterhq/muster/internal/rate"
)

// Limits limit the requests of callers. The zero value is the default, which only protects the process.
type Limits struct {
	Rates   map[string]rate.Limit // per operation and access key; operations without an entry are not limited
	Overall rate.Limit            // for all operations of an access key together; zero: no limit
	Working int                   // most concurrent requests; 0: DefaultWorking

	Clients ClientRates
}

// SetLimits changes the limits at run time. Requests in progress are not affected; the buckets of per-operation rates start full.
func (h *Handler) SetLimits(l Limits) {
	h.limiter.Set(newLimiter(l, h.now))
	h.clients.set(l.Clients)
	h.admission.working.Resize(partsOf(int64(cmp.Or(l.Working, DefaultWorking))))
}

// limitedKeysMax bounds the access keys whose buckets are kept. An installation has a few; in dev mode clients can invent them.
const limitedKeysMax = 4096

// LimitsNamed returns the limits of a profile: "default", or "gamelift" for the cloud service's documented rates, with which a backend's retries can
// be tested.
func LimitsNamed(profile string) (Limits, error) {
	switch profile {
	case "default":
		return Limits{}, nil
	case "gamelift":
		return Limits{Rates: documentedRates(), Overall: rate.PerSecond(500, 500)}, nil
	default:
		return Limits{}, fmt.Errorf("limits %q: want default or gamelift", profile)
	}
}

// documentedRates returns the cloud service's table of 2026, docs/spec/gamelift-api.md#rates: burst, tokens per second, operations. Additional limits per
// resource have no published figures. GetPlayerConnectionDetails is not in the table; it has the rate of similar operations.
func documentedRates() map[string]rate.Limit {
	rates := map[string]rate.Limit{}
	for _, line := range []struct {
		burst      int
		perSecond  float64
		operations string
	}{
		{200, 200, "CreatePlayerSession CreatePlayerSessions DescribeMatchmaking DescribePlayerSessions GetPlayerConnectionDetails"},
		{100, 100, "AcceptMatch DescribeContainerGroupPortMappings StartMatchmaking StopMatchmaking"},
		{75, 75, "DescribeGameSessionPlacement StartGameSessionPlacement"},
		{70, 70, "StartMatchBackfill"},
		{50, 50, "CreateGameSession"},
		{40, 30, "DescribeEC2InstanceLimits"},
		{30, 30, `DescribeAlias DescribeBuild DescribeCompute DescribeContainerFleet DescribeContainerGroupDefinition
			DescribeFleetAttributes DescribeFleetCapacity DescribeFleetDeployment DescribeFleetEvents DescribeFleetLocationAttributes
			DescribeFleetLocationCapacity DescribeFleetLocationUtilization DescribeFleetPortSettings DescribeFleetUtilization
			DescribeGameServerGroup DescribeGameServerInstances DescribeGameSessionDetails DescribeGameSessionQueues
			DescribeInstances DescribeMatchmakingConfigurations DescribeMatchmakingRuleSets DescribeRuntimeConfiguration
			DescribeScalingPolicies DescribeScript ListAliases ListBuilds ListCompute ListContainerFleets
			ListContainerGroupDefinitionVersions ListContainerGroupDefinitions ListFleetDeployments ListFleets
			ListGameServerGroups ListGameServers ListLocations ListScripts ListTagsForResource ResolveAlias SearchGameSessions
			TagResource UntagResource ValidateMatchmakingRuleSet`},
		{40, 20, "ClaimGameServer DeregisterGameServer DescribeGameServer RegisterGameServer UpdateGameServer"},
		{20, 20, `CreateAlias CreateBuild CreateContainerGroupDefinition CreateFleetLocations CreateGameServerGroup
			CreateGameSessionQueue CreateLocation CreateMatchmakingConfiguration CreateMatchmakingRuleSet CreateScript DeleteAlias
			DeleteBuild DeleteContainerFleet DeleteContainerGroupDefinition DeleteFleet DeleteFleetLocations
			DeleteGameServerGroup DeleteGameSessionQueue DeleteLocation DeleteMatchmakingConfiguration
			DeleteMatchmakingRuleSet DeleteScalingPolicy DeleteScript DeregisterCompute DescribeGameSessions PutScalingPolicy
			RegisterCompute StartFleetActions StopFleetActions StopGameSessionPlacement TerminateGameSession UpdateAlias
			UpdateBuild UpdateContainerFleet UpdateContainerGroupDefinition UpdateFleetAttributes UpdateFleetCapacity
			UpdateFleetPortSettings UpdateGameServerGroup UpdateGameSession UpdateGameSessionQueue
			UpdateMatchmakingConfiguration UpdateRuntimeConfiguration UpdateScript`},
		{10, 5, "GetComputeAuthToken"},
		{4, 1, "CreateContainerFleet CreateFleet GetComputeAccess GetGameSessionLogUrl GetInstanceAccess RequestUploadCredentials"},
		{1, 0.1, `CreateVpcPeeringAuthorization CreateVpcPeeringConnection DeleteVpcPeeringAuthorization
			DeleteVpcPeeringConnection DescribeVpcPeeringAuthorizations DescribeVpcPeeringConnections ResumeGameServerGroup
			SuspendGameServerGroup`},
	} {
		for name := range strings.FieldsSeq(line.operations) {
			rates[name] = rate.PerSecond(line.perSecond, line.burst)
		}
	}
	return rates
}

// throttled returns the error after which SDKs retry later.
func throttled() smithy.APIError { return commonError(codeThrottling, "Rate exceeded") }

// limiter holds the buckets of the keys in use. Without rates it is nil.
type limiter struct {
	places  map[string]int // index of an operation in rates
	rates   []rate.Limit   // the first one applies to all operations together
	started time.Time
	now     func() time.Time

	mu   sync.RWMutex
	keys map[string][]rate.Bucket
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if len(l.Rates) == 0 && l.Overall == (rate.Limit{}) {
		return nil
	}
	x := &limiter{places: map[string]int{}, rates: []rate.Limit{l.Overall}, now: now, started: now(), keys: map[string][]rate.Bucket{}}
	for name, limit := range l.Rates {
		x.places[name] = len(x.rates)
		x.rates = append(x.rates, limit)
	}
	return x
}

// allow takes a token for an operation of an access key.
func (x *limiter) allow(key, operation string) bool {
	if x == nil {
		return true
	}
	buckets, now := x.bucketsOf(key), x.now().Sub(x.started).Nanoseconds()
	if place, ok := x.places[operation]; ok && !buckets[place].Take(x.rates[place], now) {
		return false
	}
	return buckets[0].Take(x.rates[0], now)
}

func (x *limiter) bucketsOf(key string) []rate.Bucket {
	x.mu.RLock()
	buckets, ok := x.keys[key]
	x.mu.RUnlock()
	if ok {
		return buckets
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if buckets, ok := x.keys[key]; ok {
		return buckets
	}
	if len(x.keys) >= limitedKeysMax { // by then all buckets are full again: a client gains nothing by inventing keys
		clear(x.keys)
	}
	buckets = make([]rate.Bucket, len(x.rates))
	x.keys[strings.Clone(key)] = buckets // cloned so that it does not keep the request's whole header in memory
	return buckets
}
