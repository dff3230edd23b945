package gamelift

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

var twoInstanceTypes = []types.InstanceDefinition{
	{InstanceType: types.GameServerGroupInstanceTypeC5Large}, {InstanceType: types.GameServerGroupInstanceTypeC5Xlarge, WeightedCapacity: aws.String("2")},
}

func (h *hall) group(name string) *types.GameServerGroup {
	h.Helper()
	return must(h.sdk.CreateGameServerGroup(h.Context(), &gamelift.CreateGameServerGroupInput{
		GameServerGroupName: &name, RoleArn: aws.String("arn:aws:iam::123456789012:role/game"), MinSize: aws.Int32(1), MaxSize: aws.Int32(4),
		LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("arena")}, InstanceDefinitions: twoInstanceTypes,
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
	}))(h.T).GameServerGroup
}

func (h *hall) gameServer(group, id, instance string) *types.GameServer {
	h.Helper()
	h.later(time.Millisecond) // those of one millisecond are ordered by id
	return must(h.sdk.RegisterGameServer(h.Context(), &gamelift.RegisterGameServerInput{
		GameServerGroupName: &group, GameServerId: &id, InstanceId: &instance, ConnectionInfo: aws.String("192.0.2.1:7777"),
	}))(h.T).GameServer
}

const instanceA, instanceB = "i-0123456789abcdef0", "i-0123456789abcdef1"

func TestGameServersAreClaimedAndUtilized(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	group := h.group("arena")
	if group.Status != types.GameServerGroupStatusActive || len(group.InstanceDefinitions) != 2 || group.AutoScalingGroupArn != nil {
		t.Errorf("the new group: %s", rewritten(t, group))
	}
	h.gameServer("arena", "server-1", instanceA)
	h.gameServer("arena", "server-2", instanceB)
	claimed := must(h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{
		GameServerGroupName: group.GameServerGroupArn, GameServerData: aws.String("map=dust"),
	}))(t).GameServer
	if *claimed.GameServerId != "server-1" || claimed.ClaimStatus != types.GameServerClaimStatusClaimed ||
		claimed.UtilizationStatus != types.GameServerUtilizationStatusAvailable || claimed.LastClaimTime == nil || *claimed.GameServerData != "map=dust" {
		t.Errorf("claimed: %s", rewritten(t, claimed))
	}
	_, err := h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{GameServerGroupName: aws.String("arena"), GameServerId: aws.String("server-1")})
	refused(t, err, "ConflictException")
	_, err = h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{
		GameServerGroupName: aws.String("arena"), FilterOption: &types.ClaimFilterOption{InstanceStatuses: []types.FilterInstanceStatus{types.FilterInstanceStatusDraining}},
	})
	refused(t, err, "OutOfCapacityException")
	must(h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{GameServerGroupName: aws.String("arena"), GameServerId: aws.String("server-2")}))(t)
	_, err = h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{GameServerGroupName: aws.String("arena")})
	refused(t, err, "OutOfCapacityException")

	utilized := must(h.sdk.UpdateGameServer(ctx, &gamelift.UpdateGameServerInput{
		GameServerGroupName: aws.String("arena"), GameServerId: aws.String("server-1"), UtilizationStatus: types.GameServerUtilizationStatusUtilized,
		HealthCheck: types.GameServerHealthCheckHealthy,
	}))(t).GameServer
	if utilized.UtilizationStatus != types.GameServerUtilizationStatusUtilized || utilized.ClaimStatus != "" || !utilized.LastClaimTime.Equal(*claimed.LastClaimTime) {
		t.Errorf("utilized: %s", rewritten(t, utilized))
	}
	_, err = h.sdk.UpdateGameServer(ctx, &gamelift.UpdateGameServerInput{
		GameServerGroupName: aws.String("arena"), GameServerId: aws.String("server-1"), UtilizationStatus: types.GameServerUtilizationStatusAvailable,
	})
	refused(t, err, codeInvalidRequest)

	// The other claim is not used: after a minute the game server is free again.
	h.later(61 * time.Second)
	waittest.Until(h, "the claim is over", func() bool {
		got := must(h.sdk.DescribeGameServer(ctx, &gamelift.DescribeGameServerInput{GameServerGroupName: aws.String("arena"), GameServerId: aws.String("server-2")}))(t)
		return got.GameServer.ClaimStatus == ""
	})
	if again := must(h.sdk.ClaimGameServer(ctx, &gamelift.ClaimGameServerInput{GameServerGroupName: aws.String("arena")}))(t); *again.GameServer.GameServerId != "server-2" {
		t.Errorf("claimed %s, want the one whose claim was over", *again.GameServer.GameServerId)
	}
}

func TestSilentGameServersAreGone(t *testing.T) {
	h := newHall(t, time.Hour)
	h.group("arena")
	h.gameServer("arena", "silent", instanceA)
	h.gameServer("arena", "healthy", instanceA)
	h.later(2 * time.Minute)
	must(h.sdk.UpdateGameServer(t.Context(), &gamelift.UpdateGameServerInput{
		GameServerGroupName: aws.String("arena"), GameServerId: aws.String("healthy"), HealthCheck: types.GameServerHealthCheckHealthy,
	}))(t)
	h.later(2 * time.Minute)
	waittest.Until(h, "the silent game server is gone", func() bool {
		return slices.Equal(h.gameServers("arena", types.SortOrderAscending), []string{"healthy"})
	})
}

func (h *hall) gameServers(group string, order types.SortOrder) (ids []string) {
	h.Helper()
	in := gamelift.ListGameServersInput{GameServerGroupName: &group, SortOrder: order, Limit: aws.Int32(2)}
	for pages := gamelift.NewListGameServersPaginator(h.sdk, &in); pages.HasMorePages(); {
		for _, x := range must(pages.NextPage(h.Context()))(h.T).GameServers {
			ids = append(ids, *x.GameServerId)
		}
	}
	return ids
}

func TestGameServersAreListedByRegistration(t *testing.T) {
	h := newHall(t, time.Hour)
	h.group("arena")
	h.group("other")
	h.gameServer("other", "elsewhere", instanceA)
	want := []string{}
	for i := range 5 {
		id := fmt.Sprint("server-", 9-i)
		h.gameServer("arena", id, []string{instanceA, instanceB}[i%2])
		want = append(want, id)
	}
	if got := h.gameServers("arena", types.SortOrderAscending); !slices.Equal(got, want) {
		t.Errorf("ascending: %v, want %v", got, want)
	}
	slices.Reverse(want)
	if got := h.gameServers("arena", types.SortOrderDescending); !slices.Equal(got, want) {
		t.Errorf("descending: %v, want %v", got, want)
	}
	in := gamelift.DescribeGameServerInstancesInput{GameServerGroupName: aws.String("arena"), Limit: aws.Int32(1)}
	instances := []string{}
	for pages := gamelift.NewDescribeGameServerInstancesPaginator(h.sdk, &in); pages.HasMorePages(); {
		for _, x := range must(pages.NextPage(t.Context()))(t).GameServerInstances {
			instances = append(instances, *x.InstanceId+string(x.InstanceStatus))
		}
	}
	if want := []string{instanceA + "ACTIVE", instanceB + "ACTIVE"}; !slices.Equal(instances, want) {
		t.Errorf("instances: %v, want %v", instances, want)
	}
	_, err := h.sdk.DescribeGameServerInstances(t.Context(), &gamelift.DescribeGameServerInstancesInput{
		GameServerGroupName: aws.String("other"), InstanceIds: []string{instanceB},
	})
	refused(t, err, "NotFoundException")
}

func TestGameServerGroupsEnd(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	remove := func(name string, option types.GameServerGroupDeleteOption) error {
		_, err := h.sdk.DeleteGameServerGroup(ctx, &gamelift.DeleteGameServerGroupInput{GameServerGroupName: &name, DeleteOption: option})
		return err
	}
	left := func() (names []string) {
		for _, g := range must(h.sdk.ListGameServerGroups(ctx, &gamelift.ListGameServerGroupsInput{}))(t).GameServerGroups {
			names = append(names, *g.GameServerGroupName)
		}
		return names
	}
	for _, name := range []string{"empty", "busy", "forced"} {
		h.group(name)
	}
	h.gameServer("busy", "server-1", instanceA)
	h.gameServer("forced", "server-2", instanceA)
	for name, option := range map[string]types.GameServerGroupDeleteOption{
		"empty": types.GameServerGroupDeleteOptionRetain, "busy": types.GameServerGroupDeleteOptionSafeDelete, "forced": types.GameServerGroupDeleteOptionForceDelete,
	} {
		if err := remove(name, option); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := left(); !slices.Equal(got, []string{"busy"}) {
		t.Errorf("left: %v, want busy alone", got)
	}
	if g := must(h.sdk.DescribeGameServerGroup(ctx, &gamelift.DescribeGameServerGroupInput{GameServerGroupName: aws.String("busy")}))(t).GameServerGroup; g.Status != types.GameServerGroupStatusDeleteScheduled {
		t.Errorf("busy is %s", g.Status)
	}
	refused(t, remove("busy", ""), codeInvalidRequest)
	refused(t, remove("empty", ""), "NotFoundException")
	_, err := h.sdk.RegisterGameServer(ctx, &gamelift.RegisterGameServerInput{
		GameServerGroupName: aws.String("busy"), GameServerId: aws.String("late"), InstanceId: aws.String(instanceA),
	})
	refused(t, err, codeInvalidRequest)
	must(h.sdk.DeregisterGameServer(ctx, &gamelift.DeregisterGameServerInput{GameServerGroupName: aws.String("busy"), GameServerId: aws.String("server-1")}))(t)
	if got := left(); len(got) != 0 {
		t.Errorf("left: %v, want none", got)
	}
	h.gameServer(*h.group("again").GameServerGroupName, "server-2", instanceA) // its id is free again
}

func TestGameServerGroupsChange(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	arn := h.group("arena").GameServerGroupArn
	suspended := must(h.sdk.SuspendGameServerGroup(ctx, &gamelift.SuspendGameServerGroupInput{
		GameServerGroupName: arn, SuspendActions: []types.GameServerGroupAction{types.GameServerGroupActionReplaceInstanceTypes},
	}))(t).GameServerGroup
	changed := must(h.sdk.UpdateGameServerGroup(ctx, &gamelift.UpdateGameServerGroupInput{
		GameServerGroupName: arn, BalancingStrategy: types.BalancingStrategyOnDemandOnly,
	}))(t).GameServerGroup
	resumed := must(h.sdk.ResumeGameServerGroup(ctx, &gamelift.ResumeGameServerGroupInput{
		GameServerGroupName: arn, ResumeActions: []types.GameServerGroupAction{types.GameServerGroupActionReplaceInstanceTypes},
	}))(t).GameServerGroup
	if len(suspended.SuspendedActions) != 1 || len(changed.SuspendedActions) != 1 || len(resumed.SuspendedActions) != 0 {
		t.Errorf("suspended %v, changed %v, resumed %v", suspended.SuspendedActions, changed.SuspendedActions, resumed.SuspendedActions)
	}
	if resumed.BalancingStrategy != types.BalancingStrategyOnDemandOnly || resumed.GameServerProtectionPolicy != types.GameServerProtectionPolicyNoProtection {
		t.Errorf("got %s", rewritten(t, resumed))
	}
	if tags := must(h.sdk.ListTagsForResource(ctx, &gamelift.ListTagsForResourceInput{ResourceARN: arn}))(t).Tags; len(tags) != 1 {
		t.Errorf("tags: %s", rewritten(t, tags))
	}
}

func TestGameServersThatCannotBe(t *testing.T) {
	h := newHall(t, time.Hour)
	h.group("arena")
	h.group("other")
	h.gameServer("arena", "server-1", instanceA)
	for _, each := range []struct{ operation, body, code string }{
		{"CreateGameServerGroup", `{"GameServerGroupName":"arena","RoleArn":"arn:aws:iam::123456789012:role/r","MinSize":1,"MaxSize":2,"LaunchTemplate":{"LaunchTemplateName":"abc"},"InstanceDefinitions":[{"InstanceType":"c5.large"},{"InstanceType":"c5.xlarge"}]}`, "ConflictException"},
		{"CreateGameServerGroup", `{"GameServerGroupName":"x","RoleArn":"arn:aws:iam::123456789012:role/r","MinSize":3,"MaxSize":2,"LaunchTemplate":{"LaunchTemplateName":"abc"},"InstanceDefinitions":[{"InstanceType":"c5.large"},{"InstanceType":"c5.xlarge"}]}`, codeInvalidRequest},
		{"CreateGameServerGroup", `{"GameServerGroupName":"x","RoleArn":"arn:aws:iam::123456789012:role/r","MinSize":1,"MaxSize":2,"LaunchTemplate":{},"InstanceDefinitions":[{"InstanceType":"c5.large"},{"InstanceType":"c5.xlarge"}]}`, codeInvalidRequest},
		{"CreateGameServerGroup", `{"GameServerGroupName":"x","RoleArn":"arn:aws:iam::123456789012:role/r","MinSize":1,"MaxSize":2,"LaunchTemplate":{"LaunchTemplateName":"abc"},"InstanceDefinitions":[{"InstanceType":"c5.large"},{"InstanceType":"c5.large"}]}`, codeInvalidRequest},
		{"DescribeGameServerGroup", `{"GameServerGroupName":"none"}`, "NotFoundException"},
		{"UpdateGameServerGroup", `{"GameServerGroupName":"none"}`, "NotFoundException"},
		{"SuspendGameServerGroup", `{"GameServerGroupName":"none","SuspendActions":["REPLACE_INSTANCE_TYPES"]}`, "NotFoundException"},
		{"ResumeGameServerGroup", `{"GameServerGroupName":"none","ResumeActions":["REPLACE_INSTANCE_TYPES"]}`, "NotFoundException"},
		{"ListGameServerGroups", `{"NextToken":"broken"}`, codeInvalidRequest},
		{"RegisterGameServer", `{"GameServerGroupName":"none","GameServerId":"server-2","InstanceId":"` + instanceA + `"}`, codeInvalidRequest},
		{"RegisterGameServer", `{"GameServerGroupName":"other","GameServerId":"server-1","InstanceId":"` + instanceA + `"}`, "ConflictException"},
		{"DescribeGameServer", `{"GameServerGroupName":"other","GameServerId":"server-1"}`, "NotFoundException"},
		{"UpdateGameServer", `{"GameServerGroupName":"other","GameServerId":"server-1"}`, "NotFoundException"},
		{"DeregisterGameServer", `{"GameServerGroupName":"arena","GameServerId":"server-2"}`, "NotFoundException"},
		{"ClaimGameServer", `{"GameServerGroupName":"arena","GameServerId":"server-2"}`, "NotFoundException"},
		{"ClaimGameServer", `{"GameServerGroupName":"none"}`, "NotFoundException"},
		{"ListGameServers", `{"GameServerGroupName":"none"}`, codeInvalidRequest},
	} {
		if got := h.json.call(t, each.operation, each.body); got.body["__type"] != each.code {
			t.Errorf("%s %s: got %s, want %s", each.operation, each.body, got.raw, each.code)
		}
	}
}
