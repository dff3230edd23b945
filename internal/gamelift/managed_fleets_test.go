package gamelift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/capacity"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/waittest"
)

// managed makes a build and a fleet of it, with a custom location beside its home.
func (h *hall) managed() (fleetID, buildID string) {
	h.Helper()
	must(h.sdk.CreateLocation(h.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-far")}))(h.T)
	build := must(h.sdk.CreateBuild(h.Context(), &gamelift.CreateBuildInput{
		OperatingSystem: types.OperatingSystemAmazonLinux2023, StorageLocation: &types.S3Location{Bucket: aws.String("b"), Key: aws.String("k")},
	}))(h.T)
	out := must(h.sdk.CreateFleet(h.Context(), &gamelift.CreateFleetInput{
		Name: aws.String("hosts"), BuildId: build.Build.BuildArn, EC2InstanceType: types.EC2InstanceTypeC5Large, FleetType: types.FleetTypeSpot,
		InstanceRoleArn: aws.String("arn:aws:iam::123456789012:role/game"), LogPaths: []string{"/local/game/logs"},
		RuntimeConfiguration: &types.RuntimeConfiguration{ServerProcesses: []types.ServerProcess{
			{LaunchPath: aws.String("/local/game/server"), Parameters: aws.String("--port 7777"), ConcurrentExecutions: aws.Int32(2)},
		}},
		Locations: []types.LocationConfiguration{{Location: aws.String("eu-central-1")}, {Location: aws.String("custom-far")}},
	}))(h.T)
	if n := len(out.LocationStates); n != 2 || *out.LocationStates[0].Location != "eu-central-1" || out.LocationStates[0].Status != types.FleetStatusNew {
		h.Errorf("got the locations %+v, want eu-central-1 and custom-far, both NEW", out.LocationStates)
	}
	return *out.FleetAttributes.FleetId, *build.Build.BuildId
}

func TestFleetOfABuildStaysNew(t *testing.T) {
	h := newHall(t, time.Hour)
	id, build := h.managed()
	got := h.json.call(t, "DescribeFleetAttributes", `{"FleetIds":["`+id+`"]}`)
	delete(got.body["FleetAttributes"].([]any)[0].(map[string]any), "CreationTime")
	want := `{"FleetAttributes":[{"BuildArn":"arn:aws:gamelift:eu-central-1:123456789012:build/` + build + `","BuildId":"` + build + `",` +
		`"CertificateConfiguration":{"CertificateType":"DISABLED"},"ComputeType":"EC2","FleetArn":"arn:aws:gamelift:eu-central-1:123456789012:fleet/` + id + `",` +
		`"FleetId":"` + id + `","FleetType":"SPOT","InstanceRoleArn":"arn:aws:iam::123456789012:role/game","InstanceType":"c5.large","LogPaths":["/local/game/logs"],` +
		`"MetricGroups":["default"],"Name":"hosts","NewGameSessionProtectionPolicy":"NoProtection","OperatingSystem":"AMAZON_LINUX_2023","Status":"NEW"}]}`
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	events := must(h.sdk.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &id}))(t).Events
	if e := events[0]; e.EventCode != types.EventCodeGenericEvent || !strings.Contains(*e.Message, "has no host") {
		t.Errorf("the newest event is %s %q", e.EventCode, *e.Message)
	}

	_, err := h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{FleetId: &id, Location: aws.String("custom-far"), MaximumPlayerSessionCount: aws.Int32(2)})
	refused(t, err, "InvalidFleetStatusException")
	_, err = h.sdk.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{FleetId: &id, ComputeName: aws.String("c"), IpAddress: aws.String("::1"), Location: aws.String("custom-far")})
	refused(t, err, "NotReadyException")
	_, err = h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{FleetId: &id, AnywhereConfiguration: &types.AnywhereConfiguration{Cost: aws.String("1")}})
	refused(t, err, codeInvalidRequest)
	if n := len(must(h.sdk.DescribeInstances(t.Context(), &gamelift.DescribeInstancesInput{FleetId: &id}))(t).Instances); n != 0 {
		t.Errorf("%d instances, want none", n)
	}

	h.anywhereFleet() // another one, which the filter leaves out
	if got := must(h.sdk.ListFleets(t.Context(), &gamelift.ListFleetsInput{BuildId: &build}))(t).FleetIds; len(got) != 1 || got[0] != id {
		t.Errorf("fleets of the build: %v, want %s", got, id)
	}
	must(h.sdk.DeleteBuild(t.Context(), &gamelift.DeleteBuildInput{BuildId: &build}))(t)
	must(h.sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: &id}))(t)
}

func (h *hall) anywhereFleet() (fleetID string) {
	h.Helper()
	must(h.sdk.CreateLocation(h.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")}))(h.T)
	return h.fleetIn("custom-home")
}

func TestCapacityOfAFleetOfABuild(t *testing.T) {
	h := newHall(t, time.Hour)
	id, _ := h.managed()
	capacity := func(location string) types.FleetCapacity {
		t.Helper()
		if location == "" {
			return must(h.sdk.DescribeFleetCapacity(t.Context(), &gamelift.DescribeFleetCapacityInput{FleetIds: []string{id}}))(t).FleetCapacity[0]
		}
		return *must(h.sdk.DescribeFleetLocationCapacity(t.Context(), &gamelift.DescribeFleetLocationCapacityInput{FleetId: &id, Location: &location}))(t).FleetCapacity
	}
	if c := capacity(""); *c.Location != "eu-central-1" || c.InstanceType != types.EC2InstanceTypeC5Large || *c.InstanceCounts.DESIRED != 1 || *c.InstanceCounts.MINIMUM != 0 || *c.InstanceCounts.MAXIMUM != 1 {
		t.Errorf("of a new fleet: got %s %s, desired %d of %d", *c.Location, c.InstanceType, *c.InstanceCounts.DESIRED, *c.InstanceCounts.MAXIMUM)
	}
	out := must(h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, DesiredInstances: aws.Int32(2), MinSize: aws.Int32(1), MaxSize: aws.Int32(5)}))(t)
	if *out.Location != "eu-central-1" || out.ManagedCapacityConfiguration.ZeroCapacityStrategy != types.ZeroCapacityStrategyManual {
		t.Errorf("got %s %+v", *out.Location, out.ManagedCapacityConfiguration)
	}
	must(h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, Location: aws.String("custom-far"),
		ManagedCapacityConfiguration: &types.ManagedCapacityConfiguration{ZeroCapacityStrategy: types.ZeroCapacityStrategyScaleToAndFromZero}}))(t)
	if n := capacity("").InstanceCounts; *n.DESIRED != 2 || *n.MINIMUM != 1 || *n.MAXIMUM != 5 || *n.ACTIVE != 0 {
		t.Errorf("at home: desired %d in %d..%d, active %d", *n.DESIRED, *n.MINIMUM, *n.MAXIMUM, *n.ACTIVE)
	}
	if m := capacity("custom-far").ManagedCapacityConfiguration; m.ZeroCapacityStrategy != types.ZeroCapacityStrategyScaleToAndFromZero || *m.ScaleInAfterInactivityMinutes != 30 {
		t.Errorf("far away: %s after %d minutes", m.ZeroCapacityStrategy, *m.ScaleInAfterInactivityMinutes)
	}
	_, err := h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, DesiredInstances: aws.Int32(6)})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, Location: aws.String("custom-x"), MaxSize: aws.Int32(6)})
	refused(t, err, "NotFoundException")
	must(h.sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: &id}))(t)
	waittest.Until(t, "a deleted fleet that wanted hosts is not listed any more", func() bool {
		return len(must(h.sdk.ListFleets(t.Context(), &gamelift.ListFleetsInput{}))(t).FleetIds) == 0
	})
	anywhere := h.anywhereFleet()
	_, err = h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &anywhere, DesiredInstances: aws.Int32(1)})
	refused(t, err, codeInvalidRequest)
}

func TestScalingOfAFleetOfABuild(t *testing.T) {
	h := newHall(t, time.Hour)
	id, _ := h.managed()
	for _, each := range []struct{ name, body, text string }{
		{"no target", `{"Name":"n","FleetId":"FLEET","MetricName":"PercentAvailableGameSessions","PolicyType":"TargetBased"}`, "TargetConfiguration"},
		{"no percentage", `{"Name":"n","FleetId":"FLEET","MetricName":"PercentAvailableGameSessions","PolicyType":"TargetBased","TargetConfiguration":{"TargetValue":101}}`, "TargetValue"},
		{"another metric", `{"Name":"n","FleetId":"FLEET","MetricName":"QueueDepth","PolicyType":"TargetBased","TargetConfiguration":{"TargetValue":10}}`, "MetricName"},
		{"a rule's member", `{"Name":"n","FleetId":"FLEET","MetricName":"PercentAvailableGameSessions","PolicyType":"TargetBased","Threshold":1,"TargetConfiguration":{"TargetValue":10}}`, "Threshold"},
		{"half a rule", `{"Name":"n","FleetId":"FLEET","MetricName":"IdleInstances","ComparisonOperator":"LessThanThreshold","Threshold":1}`, "EvaluationPeriods"},
		{"too long", `{"Name":"n","FleetId":"FLEET","MetricName":"IdleInstances","ComparisonOperator":"LessThanThreshold","Threshold":1,"EvaluationPeriods":241,` +
			`"ScalingAdjustmentType":"ExactCapacity","ScalingAdjustment":1}`, "at most 240 minutes"},
		{"fewer than none", `{"Name":"n","FleetId":"FLEET","MetricName":"IdleInstances","ComparisonOperator":"LessThanThreshold","Threshold":1,"EvaluationPeriods":1,` +
			`"ScalingAdjustmentType":"ExactCapacity","ScalingAdjustment":-1}`, "ScalingAdjustment"},
	} {
		if got := h.json.call(t, "PutScalingPolicy", withFleet(each.body, id)); got.body["__type"] != codeInvalidRequest || !strings.Contains(got.raw, each.text) {
			t.Errorf("%s: got %s, want %s with %q", each.name, got.raw, codeInvalidRequest, each.text)
		}
	}
	target := &gamelift.PutScalingPolicyInput{Name: aws.String("keep"), FleetId: &id, PolicyType: types.PolicyTypeTargetBased,
		MetricName: types.MetricNamePercentAvailableGameSessions, TargetConfiguration: &types.TargetConfiguration{TargetValue: aws.Float64(12.5)}}
	rule := &gamelift.PutScalingPolicyInput{Name: aws.String("grow"), FleetId: &id, MetricName: types.MetricNameIdleInstances,
		ComparisonOperator: types.ComparisonOperatorTypeLessThanThreshold, Threshold: aws.Float64(1), EvaluationPeriods: aws.Int32(3),
		ScalingAdjustmentType: types.ScalingAdjustmentTypePercentChangeInCapacity, ScalingAdjustment: aws.Int32(-10)}
	must(h.sdk.PutScalingPolicy(t.Context(), target))(t)
	must(h.sdk.PutScalingPolicy(t.Context(), rule))(t)
	target.TargetConfiguration.TargetValue = aws.Float64(20)
	must(h.sdk.PutScalingPolicy(t.Context(), target))(t)

	var all []types.ScalingPolicy
	pages := gamelift.NewDescribeScalingPoliciesPaginator(h.sdk, &gamelift.DescribeScalingPoliciesInput{FleetId: &id, Limit: aws.Int32(1), Location: aws.String("custom-far")})
	for pages.HasMorePages() {
		all = append(all, must(pages.NextPage(t.Context()))(t).ScalingPolicies...)
	}
	if len(all) != 2 || *all[1].TargetConfiguration.TargetValue != 20 || *all[0].ScalingAdjustment != -10 || *all[0].Threshold != 1 || all[0].Status != types.ScalingStatusTypeActive {
		t.Errorf("got %+v", all)
	}
	if n := len(must(h.sdk.DescribeScalingPolicies(t.Context(), &gamelift.DescribeScalingPoliciesInput{FleetId: &id, StatusFilter: types.ScalingStatusTypeError}))(t).ScalingPolicies); n != 0 {
		t.Errorf("%d policies in ERROR, want none", n)
	}
	must(h.sdk.DeleteScalingPolicy(t.Context(), &gamelift.DeleteScalingPolicyInput{FleetId: &id, Name: aws.String("grow")}))(t)
	_, err := h.sdk.DeleteScalingPolicy(t.Context(), &gamelift.DeleteScalingPolicyInput{FleetId: &id, Name: aws.String("grow")})
	refused(t, err, "NotFoundException")

	auto := []types.FleetAction{types.FleetActionAutoScaling}
	must(h.sdk.StopFleetActions(t.Context(), &gamelift.StopFleetActionsInput{FleetId: &id, Actions: auto}))(t)
	stopped := func() (fleet, home, far int) {
		f := must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{id}}))(t).FleetAttributes[0]
		at := must(h.sdk.DescribeFleetLocationAttributes(t.Context(), &gamelift.DescribeFleetLocationAttributesInput{FleetId: &id}))(t).LocationAttributes
		return len(f.StoppedActions), len(at[0].StoppedActions), len(at[1].StoppedActions)
	}
	if f, home, far := stopped(); f != 1 || home != 1 || far != 0 {
		t.Errorf("stopped: %d of the fleet, %d at home, %d far away", f, home, far)
	}
	must(h.sdk.StartFleetActions(t.Context(), &gamelift.StartFleetActionsInput{FleetId: &id, Actions: auto}))(t)
	if f, home, far := stopped(); f+home+far != 0 {
		t.Errorf("stopped after the start: %d of the fleet, %d at home, %d far away", f, home, far)
	}
	anywhere := h.anywhereFleet()
	_, err = h.sdk.StopFleetActions(t.Context(), &gamelift.StopFleetActionsInput{FleetId: &anywhere, Actions: auto})
	refused(t, err, codeInvalidRequest)
	target.FleetId = &anywhere
	_, err = h.sdk.PutScalingPolicy(t.Context(), target)
	refused(t, err, codeInvalidRequest)
	if n := len(must(h.sdk.DescribeScalingPolicies(t.Context(), &gamelift.DescribeScalingPoliciesInput{FleetId: &anywhere}))(t).ScalingPolicies); n != 0 {
		t.Errorf("%d policies of an ANYWHERE fleet", n)
	}
}

// A policy that goes between two pages hides no other one.
func TestPagesOfScalingPolicies(t *testing.T) {
	h := newHall(t, time.Hour)
	id, _ := h.managed()
	for _, name := range []string{"c", "a", "d", "b"} {
		must(h.sdk.PutScalingPolicy(t.Context(), &gamelift.PutScalingPolicyInput{Name: &name, FleetId: &id, PolicyType: types.PolicyTypeTargetBased,
			MetricName: types.MetricNamePercentAvailableGameSessions, TargetConfiguration: &types.TargetConfiguration{TargetValue: aws.Float64(10)}}))(t)
	}
	var seen []string
	pages := gamelift.NewDescribeScalingPoliciesPaginator(h.sdk, &gamelift.DescribeScalingPoliciesInput{FleetId: &id, Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, p := range must(pages.NextPage(t.Context()))(t).ScalingPolicies {
			seen = append(seen, *p.Name)
		}
		if len(seen) == 2 {
			must(h.sdk.DeleteScalingPolicy(t.Context(), &gamelift.DeleteScalingPolicyInput{FleetId: &id, Name: aws.String("a")}))(t)
		}
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestRuntimeConfigurationActs(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	if got := h.json.call(t, "DescribeRuntimeConfiguration", `{"FleetId":"`+id+`"}`); !strings.HasPrefix(got.raw, `{"RuntimeConfiguration":{`) || strings.Contains(got.raw, "Max") {
		t.Errorf("of a fleet that was given none: %s", got.raw)
	}
	set := &types.RuntimeConfiguration{GameSessionActivationTimeoutSeconds: aws.Int32(20), MaxConcurrentGameSessionActivations: aws.Int32(1)}
	must(h.sdk.UpdateRuntimeConfiguration(t.Context(), &gamelift.UpdateRuntimeConfigurationInput{FleetId: &id, RuntimeConfiguration: set}))(t)
	got := must(h.sdk.DescribeRuntimeConfiguration(t.Context(), &gamelift.DescribeRuntimeConfigurationInput{FleetId: &id}))(t).RuntimeConfiguration
	if *got.GameSessionActivationTimeoutSeconds != 20 || *got.MaxConcurrentGameSessionActivations != 1 || len(got.ServerProcesses) != 0 {
		t.Errorf("got %+v", got)
	}

	h.serverReady(id, "p1")
	h.serverReady(id, "p2")
	create := &gamelift.CreateGameSessionInput{FleetId: &id, Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(2)}
	first := must(h.sdk.CreateGameSession(t.Context(), create))(t).GameSession
	_, err := h.sdk.CreateGameSession(t.Context(), create)
	refused(t, err, "FleetCapacityExceededException") // one is ACTIVATING on the host
	h.later(21 * time.Second)
	h.do(&kernel.Tick{})
	late := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{GameSessionId: first.GameSessionId}))(t).GameSessions[0]
	if late.Status != types.GameSessionStatusTerminated {
		t.Errorf("after 21 s the game session is %s", late.Status)
	}
	must(h.sdk.CreateGameSession(t.Context(), create))(t)

	set.ServerProcesses = []types.ServerProcess{{LaunchPath: aws.String("/local/game/server"), ConcurrentExecutions: aws.Int32(1)}}
	must(h.sdk.UpdateRuntimeConfiguration(t.Context(), &gamelift.UpdateRuntimeConfigurationInput{FleetId: &id, RuntimeConfiguration: set}))(t)
	got = must(h.sdk.DescribeRuntimeConfiguration(t.Context(), &gamelift.DescribeRuntimeConfigurationInput{FleetId: &id}))(t).RuntimeConfiguration
	if len(got.ServerProcesses) != 1 || *got.ServerProcesses[0].LaunchPath != "/local/game/server" {
		t.Errorf("the agents of an ANYWHERE fleet would read %+v", got)
	}
	set.GameSessionActivationTimeoutSeconds = aws.Int32(601)
	_, err = h.sdk.UpdateRuntimeConfiguration(t.Context(), &gamelift.UpdateRuntimeConfigurationInput{FleetId: &id, RuntimeConfiguration: set})
	refused(t, err, codeInvalidRequest)

	managed, _ := h.managed()
	set.GameSessionActivationTimeoutSeconds, set.ServerProcesses[0].ConcurrentExecutions = nil, aws.Int32(51)
	_, err = h.sdk.UpdateRuntimeConfiguration(t.Context(), &gamelift.UpdateRuntimeConfigurationInput{FleetId: &managed, RuntimeConfiguration: set})
	refused(t, err, "LimitExceededException")
	set.ServerProcesses[0].ConcurrentExecutions = aws.Int32(50)
	out := must(h.sdk.UpdateRuntimeConfiguration(t.Context(), &gamelift.UpdateRuntimeConfigurationInput{FleetId: &managed, RuntimeConfiguration: set}))(t)
	if n := len(out.RuntimeConfiguration.ServerProcesses); n != 1 || out.RuntimeConfiguration.GameSessionActivationTimeoutSeconds != nil {
		t.Errorf("got %+v", out.RuntimeConfiguration)
	}
}

// pool is a pool of hosts that a test controls.
type pool []capacity.Host

func (p pool) EachHost(yield func(capacity.Host) bool) {
	for _, h := range p {
		if !yield(h) {
			return
		}
	}
}

// The instance view of hosts: DescribeInstances lists the hosts that DescribeFleetCapacity counts.
func TestHostsOfAFleetOfABuild(t *testing.T) {
	config := cell.DefaultConfig()
	config.Pool = pool{
		{ID: "h1", Name: "rack-1", Location: "custom-far", IP: "10.0.0.1"}, {ID: "h2", Name: "rack-2", Location: "custom-far", IP: "10.0.0.2"},
		{ID: "h3", Name: "rack-3", Location: "custom-far", IP: "10.0.0.3"}, {ID: "h4", Name: "rack-4", Location: "custom-other"},
	}
	h := newHallWith(t, time.Hour, config)
	id, _ := h.managed()
	want := func(n int32) {
		t.Helper()
		must(h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, Location: aws.String("custom-far"), DesiredInstances: &n, MaxSize: aws.Int32(5)}))(t)
		h.do(&capacity.Plan{})
	}
	check := func(wanted, counts string) {
		t.Helper()
		var got []string
		pages := gamelift.NewDescribeInstancesPaginator(h.sdk, &gamelift.DescribeInstancesInput{FleetId: &id, Location: aws.String("custom-far"), Limit: aws.Int32(2)})
		for pages.HasMorePages() {
			for _, x := range must(pages.NextPage(t.Context()))(t).Instances {
				got = append(got, *x.InstanceId+" "+string(x.Status))
			}
		}
		if strings.Join(got, ", ") != wanted {
			t.Errorf("instances %q, want %q", got, wanted)
		}
		c := must(h.sdk.DescribeFleetLocationCapacity(t.Context(), &gamelift.DescribeFleetLocationCapacityInput{FleetId: &id, Location: aws.String("custom-far")}))(t).FleetCapacity.InstanceCounts
		if text := fmt.Sprintf("desired %d pending %d active %d idle %d terminating %d", *c.DESIRED, *c.PENDING, *c.ACTIVE, *c.IDLE, *c.TERMINATING); text != counts {
			t.Errorf("got %s, want %s", text, counts)
		}
	}
	want(4)
	check("rack-1 PENDING, rack-2 PENDING, rack-3 PENDING", "desired 4 pending 3 active 0 idle 0 terminating 0")
	for i, name := range []string{"rack-1", "rack-2"} {
		key := fleet.Key{Fleet: id, Compute: name, Process: "p"}
		h.do(&hosting.ConnectProcess{Process: key, Link: 9})
		h.do(&hosting.ActivateProcess{Process: key, Link: 9, Port: 7777, Request: uint64(i + 1)})
		h.do(&hosting.ReportHealth{Process: key, Healthy: true})
	}
	h.do(&capacity.Plan{})
	must(h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{FleetId: &id, Location: aws.String("custom-far"), MaximumPlayerSessionCount: aws.Int32(2)}))(t)
	check("rack-1 ACTIVE, rack-2 ACTIVE, rack-3 PENDING", "desired 4 pending 1 active 2 idle 1 terminating 0")
	want(1)
	check("rack-1 ACTIVE, rack-2 TERMINATING", "desired 1 pending 0 active 1 idle 0 terminating 1")
	one := must(h.sdk.DescribeInstances(t.Context(), &gamelift.DescribeInstancesInput{FleetId: &id, InstanceId: aws.String("rack-1")}))(t).Instances
	if len(one) != 1 || *one[0].IpAddress != "10.0.0.1" || one[0].OperatingSystem != types.OperatingSystemAmazonLinux2023 {
		t.Errorf("got %+v", one)
	}
	_, err := h.sdk.DescribeInstances(t.Context(), &gamelift.DescribeInstancesInput{FleetId: &id, InstanceId: aws.String("rack-9")})
	refused(t, err, "NotFoundException")
	_, err = h.sdk.DescribeInstances(t.Context(), &gamelift.DescribeInstancesInput{FleetId: &id, Location: aws.String("custom-nowhere")})
	refused(t, err, "NotFoundException")
}

// Clients of a fleet with one location name none, and get a game session in the fleet's home location.
func TestGameSessionInTheHomeLocation(t *testing.T) {
	config := cell.DefaultConfig()
	config.Pool = pool{{ID: "h1", Name: "rack-1", Location: "eu-central-1", IP: "10.0.0.1"}}
	h := newHallWith(t, time.Hour, config)
	id, _ := h.managed()
	must(h.sdk.UpdateFleetCapacity(t.Context(), &gamelift.UpdateFleetCapacityInput{FleetId: &id, DesiredInstances: aws.Int32(1)}))(t)
	h.do(&capacity.Plan{})
	key := fleet.Key{Fleet: id, Compute: "rack-1", Process: "p"}
	h.do(&hosting.ConnectProcess{Process: key, Link: 9})
	h.do(&hosting.ActivateProcess{Process: key, Link: 9, Port: 7777, Request: 1})
	h.do(&hosting.ReportHealth{Process: key, Healthy: true})
	h.do(&capacity.Plan{})
	in := &gamelift.CreateGameSessionInput{FleetId: &id, MaximumPlayerSessionCount: aws.Int32(2), IdempotencyToken: aws.String("m1")}
	for range 2 {
		g := must(h.sdk.CreateGameSession(t.Context(), in))(t).GameSession
		if *g.Location != "eu-central-1" || !strings.HasSuffix(*g.GameSessionId, "/eu-central-1/m1") {
			t.Errorf("got %s in %s", *g.GameSessionId, *g.Location)
		}
	}
}
