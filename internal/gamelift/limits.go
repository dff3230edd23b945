package gamelift

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go"
)

// Limits bound what callers may ask for. The zero value is the default: nothing but the process is protected.
type Limits struct {
	Rates   map[string]Rate // by operation, for each access key; one that is not in it is not limited
	Overall Rate            // of all operations of an access key together; zero: not limited
	Working int             // requests that are worked on at a time; 0: DefaultWorking

	Clients ClientRates
}

// Rate is a token bucket: a request takes a token, and without one it is refused.
type Rate struct {
	Burst     float64 // tokens that the bucket holds
	PerSecond float64 // tokens that come back
}

// limitedKeysMax bounds the access keys whose buckets are remembered. An installation has a few; in dev mode anybody
// invents them.
const limitedKeysMax = 4096

// LimitsNamed gives the limits of a profile: "default", or "gamelift" for the rates that the cloud service documents, to
// try out a backend's retries.
func LimitsNamed(profile string) (Limits, error) {
	switch profile {
	case "default":
		return Limits{}, nil
	case "gamelift":
		return Limits{Rates: documentedRates(), Overall: Rate{500, 500}}, nil
	default:
		return Limits{}, fmt.Errorf("limits %q: want default or gamelift", profile)
	}
}

// documentedRates is the service's table of 2026, docs/spec/gamelift-api.md#rates: burst, tokens a second, operations. Additional limits for one resource
// have no published figures. GetPlayerConnectionDetails is not in the table; it stands beside its like.
func documentedRates() map[string]Rate {
	rates := map[string]Rate{}
	for _, line := range []struct {
		Rate
		operations string
	}{
		{Rate{200, 200}, "CreatePlayerSession CreatePlayerSessions DescribeMatchmaking DescribePlayerSessions GetPlayerConnectionDetails"},
		{Rate{100, 100}, "AcceptMatch DescribeContainerGroupPortMappings StartMatchmaking StopMatchmaking"},
		{Rate{75, 75}, "DescribeGameSessionPlacement StartGameSessionPlacement"},
		{Rate{70, 70}, "StartMatchBackfill"},
		{Rate{50, 50}, "CreateGameSession"},
		{Rate{40, 30}, "DescribeEC2InstanceLimits"},
		{Rate{30, 30}, `DescribeAlias DescribeBuild DescribeCompute DescribeContainerFleet DescribeContainerGroupDefinition
			DescribeFleetAttributes DescribeFleetCapacity DescribeFleetDeployment DescribeFleetEvents DescribeFleetLocationAttributes
			DescribeFleetLocationCapacity DescribeFleetLocationUtilization DescribeFleetPortSettings DescribeFleetUtilization
			DescribeGameServerGroup DescribeGameServerInstances DescribeGameSessionDetails DescribeGameSessionQueues
			DescribeInstances DescribeMatchmakingConfigurations DescribeMatchmakingRuleSets DescribeRuntimeConfiguration
			DescribeScalingPolicies DescribeScript ListAliases ListBuilds ListCompute ListContainerFleets
			ListContainerGroupDefinitionVersions ListContainerGroupDefinitions ListFleetDeployments ListFleets
			ListGameServerGroups ListGameServers ListLocations ListScripts ListTagsForResource ResolveAlias SearchGameSessions
			TagResource UntagResource ValidateMatchmakingRuleSet`},
		{Rate{40, 20}, "ClaimGameServer DeregisterGameServer DescribeGameServer RegisterGameServer UpdateGameServer"},
		{Rate{20, 20}, `CreateAlias CreateBuild CreateContainerGroupDefinition CreateFleetLocations CreateGameServerGroup
			CreateGameSessionQueue CreateLocation CreateMatchmakingConfiguration CreateMatchmakingRuleSet CreateScript DeleteAlias
			DeleteBuild DeleteContainerFleet DeleteContainerGroupDefinition DeleteFleet DeleteFleetLocations
			DeleteGameServerGroup DeleteGameSessionQueue DeleteLocation DeleteMatchmakingConfiguration
			DeleteMatchmakingRuleSet DeleteScalingPolicy DeleteScript DeregisterCompute DescribeGameSessions PutScalingPolicy
			RegisterCompute StartFleetActions StopFleetActions StopGameSessionPlacement TerminateGameSession UpdateAlias
			UpdateBuild UpdateContainerFleet UpdateContainerGroupDefinition UpdateFleetAttributes UpdateFleetCapacity
			UpdateFleetPortSettings UpdateGameServerGroup UpdateGameSession UpdateGameSessionQueue
			UpdateMatchmakingConfiguration UpdateRuntimeConfiguration UpdateScript`},
		{Rate{10, 5}, "GetComputeAuthToken"},
		{Rate{4, 1}, "CreateContainerFleet CreateFleet GetComputeAccess GetGameSessionLogUrl GetInstanceAccess RequestUploadCredentials"},
		{Rate{1, 0.1}, `CreateVpcPeeringAuthorization CreateVpcPeeringConnection DeleteVpcPeeringAuthorization
			DeleteVpcPeeringConnection DescribeVpcPeeringAuthorizations DescribeVpcPeeringConnections ResumeGameServerGroup
			SuspendGameServerGroup`},
	} {
		for name := range strings.FieldsSeq(line.operations) {
			rates[name] = line.Rate
		}
	}
	return rates
}

// throttled is what SDKs recognise, and try again after a while.
func throttled() smithy.APIError { return commonError(codeThrottling, "Rate exceeded") }

// limiter holds the buckets of the keys that were seen. Without rates it is nil.
type limiter struct {
	places  map[string]int // of an operation in rates
	rates   []bucketRate   // the first is that of all operations together
	started time.Time
	now     func() time.Time

	mu   sync.RWMutex
	keys map[string][]atomic.Int64
}

// bucketRate is a Rate as the buckets count. A bucket is one number: the instant, in nanoseconds since the limiter began,
// at which it is full again. A request moves it by the time that one token takes to come back, and is refused when that
// instant lies more than a whole bucket ahead. (The generic cell rate algorithm: the same answers as a token bucket.)
type bucketRate struct{ token, most int64 }

func newBucketRate(r Rate) bucketRate {
	if r.PerSecond <= 0 {
		return bucketRate{}
	}
	token := float64(time.Second) / r.PerSecond
	return bucketRate{int64(token), int64(token * r.Burst)}
}

func newLimiter(l Limits, now func() time.Time) *limiter {
	if len(l.Rates) == 0 && l.Overall == (Rate{}) {
		return nil
	}
	x := &limiter{places: map[string]int{}, rates: []bucketRate{newBucketRate(l.Overall)}, now: now, started: now(), keys: map[string][]atomic.Int64{}}
	for name, rate := range l.Rates {
		x.places[name] = len(x.rates)
		x.rates = append(x.rates, newBucketRate(rate))
	}
	return x
}

// allow takes a token for an operation of an access key.
func (x *limiter) allow(key, operation string) bool {
	if x == nil {
		return true
	}
	buckets, now := x.bucketsOf(key), x.now().Sub(x.started).Nanoseconds()
	if place, ok := x.places[operation]; ok && !take(&buckets[place], x.rates[place], now) {
		return false
	}
	return take(&buckets[0], x.rates[0], now)
}

func take(bucket *atomic.Int64, rate bucketRate, now int64) bool {
	if rate.token == 0 {
		return true
	}
	for {
		full := bucket.Load()
		next := max(full, now) + rate.token
		if next-now > rate.most {
			return false
		}
		if bucket.CompareAndSwap(full, next) {
			return true
		}
	}
}

func (x *limiter) bucketsOf(key string) []atomic.Int64 {
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
	if len(x.keys) >= limitedKeysMax { // all buckets are full again: who invents keys could have had that anyway
		clear(x.keys)
	}
	buckets = make([]atomic.Int64, len(x.rates))
	x.keys[strings.Clone(key)] = buckets // cloned, or it would keep the whole header of its request alive
	return buckets
}
