package gamelift

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/fleet"
	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/kernel"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/enginetest"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/policy"
)

// namesNothing are members whose names look like references, but which name no resource for policies: new objects, filters, people and objects that
// this service does not have.
var namesNothing = strings.Fields(`ComputeName ContainerGroupDefinitionName ContainerName CreatorId DeploymentId DnsName FleetRoleArn GameLiftAwsAccountId
	GameServerContainerGroupDefinitionName GameServerId GameSessionName InstanceId InstanceIds InstanceRoleArn MetricName PeerVpcAwsAccountId PeerVpcId
	PerInstanceContainerGroupDefinitionName PlayerId PlayerIds RoleArn ScriptId TagKeys VpcPeeringConnectionId`)

// Every operation is an action, and every member of an input that may name a resource is known to do so or not.
func TestOperationsAreActions(t *testing.T) {
	names := regexp.MustCompile(`(Id|Ids|Name|Names|ARN|Arn|Arns|ARNs|TagKeys)$`)
	used := map[string]bool{}
	for name, op := range compiledOperations() {
		if _, ok := policy.Of("gamelift:" + name); !ok {
			t.Errorf("%s is no action", name)
		}
		used["gamelift:"+name] = true
		for i := range op.input.NumField() {
			member := op.input.Field(i).Name
			known := slices.ContainsFunc(op.naming.members, func(m namingMember) bool { return m.field == i })
			_, other := otherReferences[name][member]
			title := member == "Name" && (strings.HasPrefix(name, "Create") || strings.HasPrefix(name, "Update") || slices.Contains([]string{"ListAliases", "PutScalingPolicy", "DeleteScalingPolicy"}, name))
			title = title || member == "Name" && strings.Contains(name, "ContainerGroupDefinition")
			if names.MatchString(member) && !known && !other && !title && !slices.Contains(namesNothing, member) {
				t.Errorf("%s: policies do not see what %s names", name, member)
			}
		}
	}
	for _, name := range policy.Actions() {
		if strings.HasPrefix(name, "gamelift:") && !used[name] {
			t.Errorf("no operation is %s", name)
		}
	}
}

// restricted gives a key one policy of some statements.
func restricted(t testing.TB, role identity.Role, statements ...string) Caller {
	t.Helper()
	secret, err := identity.OpenCellSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := identity.NewKeys(secret, time.Now)
	keys.Publish([]access.Key{{ID: "CI", Role: role, Account: "123456789012"}})
	err = keys.PublishPolicies([]access.Policy{{Name: "p", Text: `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`}},
		[]access.PolicyAttachment{{Policy: "p", Target: access.Target{Kind: access.KeyTarget, Name: "CI"}}})
	if err != nil {
		t.Fatal(err)
	}
	key, _ := keys.Find("CI")
	return Caller{key.Principal("192.0.2.7"), "eu-central-1"}
}

func leadingTo(arns ...string) (all []types.GameSessionQueueDestination) {
	for _, arn := range arns {
		all = append(all, types.GameSessionQueueDestination{DestinationArn: &arn})
	}
	return all
}

func allowOn(effect, action, resource string, rest ...string) string {
	return fmt.Sprintf(`{"Effect":%q,"Action":%q,"Resource":%q%s}`, effect, action, resource, strings.Join(rest, ""))
}

// Policies see the resource that an operation works on, in whatever form its input names it, with the tags that it has in the state.
func TestPoliciesSeeResources(t *testing.T) {
	h := newHall(t, time.Hour)
	ctx := t.Context()
	mine := h.anywhere()
	other := *must(h.sdk.CreateFleet(ctx, &gamelift.CreateFleetInput{Name: aws.String("other"), ComputeType: types.ComputeTypeAnywhere,
		Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}}, Tags: []types.Tag{{Key: aws.String("env"), Value: aws.String("prod")}}}))(t).FleetAttributes.FleetId
	must(h.sdk.RegisterCompute(ctx, &gamelift.RegisterComputeInput{FleetId: &other, ComputeName: aws.String("rack"), Location: aws.String("custom-home"), IpAddress: aws.String("10.0.0.1")}))(t)
	must(h.sdk.TagResource(ctx, &gamelift.TagResourceInput{ResourceARN: aws.String("arn:aws:gamelift:us-east-1::compute/" + other + "/rack"), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}}))(t)
	game, _ := h.activeGame(mine, "p1")
	player := must(h.sdk.CreatePlayerSession(ctx, &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t).PlayerSession
	alias := *must(h.sdk.CreateAlias(ctx, &gamelift.CreateAliasInput{Name: aws.String("live"), RoutingStrategy: simple(mine)}))(t).Alias.AliasId
	must(h.sdk.CreateGameSessionQueue(ctx, &gamelift.CreateGameSessionQueueInput{Name: aws.String("q"), Destinations: []types.GameSessionQueueDestination{{DestinationArn: aws.String("arn:aws:gamelift:us-east-1::fleet/" + mine)}}}))(t)
	must(h.sdk.StartGameSessionPlacement(ctx, &gamelift.StartGameSessionPlacementInput{PlacementId: aws.String("p-1"), GameSessionQueueName: aws.String("q"), MaximumPlayerSessionCount: aws.Int32(2)}))(t)
	on := func(id string) string { return "arn:aws:gamelift:*:*:" + id }
	oddly := func(id string) string { return "arn:aws:gamelift:mars-1:999999999999:" + id }
	all := allowOn("Allow", "*", "*")
	deny := func(id string) string { return allowOn("Deny", "gamelift:*", on(id)) }
	for what, x := range map[string]struct {
		statements []string
		operation  string
		in         any
		denied     string // resource; empty: it is allowed
	}{
		"a fleet by its id":            {[]string{allowOn("Allow", "gamelift:Describe*", on("fleet/"+mine))}, "DescribeFleetCapacity", &gamelift.DescribeFleetCapacityInput{FleetIds: []string{mine}}, ""},
		"two fleets, one allowed":      {[]string{allowOn("Allow", "gamelift:Describe*", on("fleet/"+mine))}, "DescribeFleetCapacity", &gamelift.DescribeFleetCapacityInput{FleetIds: []string{mine, other}}, "fleet/" + other},
		"all fleets, one allowed":      {[]string{allowOn("Allow", "gamelift:Describe*", on("fleet/"+mine))}, "DescribeFleetCapacity", &gamelift.DescribeFleetCapacityInput{}, "*"},
		"a list":                       {[]string{allowOn("Allow", "gamelift:List*", on("fleet/*"))}, "ListFleets", &gamelift.ListFleetsInput{}, "*"},
		"a list of a rule set's users": {[]string{allowOn("Allow", "gamelift:*", on("matchmakingruleset/r"))}, "DescribeMatchmakingConfigurations", &gamelift.DescribeMatchmakingConfigurationsInput{RuleSetName: aws.String("r")}, "*"},
		"a list, allowed":              {[]string{allowOn("Allow", "gamelift:List*", "*")}, "ListFleets", &gamelift.ListFleetsInput{}, ""},
		"a denied fleet by an ARN":     {[]string{all, deny("fleet/" + mine)}, "DeleteFleet", &gamelift.DeleteFleetInput{FleetId: aws.String(oddly("fleet/" + mine))}, "fleet/" + mine},
		"a denied fleet by odd parts":  {[]string{all, deny("fleet/" + mine)}, "DeleteFleet", &gamelift.DeleteFleetInput{FleetId: aws.String("arn:aws:gamelift:x:y:fleet/z/" + mine)}, "fleet/" + mine},
		"a denied fleet by its alias":  {[]string{all, deny("fleet/" + mine)}, "CreateGameSession", &gamelift.CreateGameSessionInput{AliasId: aws.String(oddly("alias/" + alias)), MaximumPlayerSessionCount: aws.Int32(2)}, "fleet/" + mine},
		"an alias that does not exist": {[]string{all, deny("fleet/" + mine)}, "CreateGameSession", &gamelift.CreateGameSessionInput{AliasId: aws.String("alias-none"), MaximumPlayerSessionCount: aws.Int32(2)}, ""},
		"an alias itself":              {[]string{allowOn("Allow", "gamelift:*", on("alias/"+alias))}, "DescribeAlias", &gamelift.DescribeAliasInput{AliasId: &alias}, ""},
		"a game session":               {[]string{all, deny("fleet/" + mine)}, "TerminateGameSession", &gamelift.TerminateGameSessionInput{GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate}, "fleet/" + mine},
		"a game session, oddly":        {[]string{all, deny("fleet/" + mine)}, "CreatePlayerSession", &gamelift.CreatePlayerSessionInput{GameSessionId: aws.String("arn:x:gamesession/" + string(h.gameID(*game.GameSessionId))), PlayerId: aws.String("bob")}, "fleet/" + mine},
		"an old form of its ARN":       {[]string{all, deny("fleet/" + mine)}, "CreatePlayerSession", &gamelift.CreatePlayerSessionInput{GameSessionId: aws.String("arn:aws:gamelift:custom-home::gamesession/" + mine + "/" + lastPart(*game.GameSessionId)), PlayerId: aws.String("bob")}, "fleet/" + mine},
		"a player session":             {[]string{all, deny("fleet/" + mine)}, "DescribePlayerSessions", &gamelift.DescribePlayerSessionsInput{PlayerSessionId: player.PlayerSessionId}, "fleet/" + mine},
		"a player's sessions":          {[]string{allowOn("Allow", "*", on("fleet/*"))}, "DescribePlayerSessions", &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("ann")}, "*"},
		"a placement":                  {[]string{all, deny("gamesessionqueue/q")}, "DescribeGameSessionPlacement", &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String("p-1")}, "gamesessionqueue/q"},
		"a placement in a queue":       {[]string{all, deny("gamesessionqueue/q")}, "StartGameSessionPlacement", &gamelift.StartGameSessionPlacementInput{PlacementId: aws.String("p-2"), GameSessionQueueName: aws.String(oddly("gamesessionqueue/q")), MaximumPlayerSessionCount: aws.Int32(2)}, "gamesessionqueue/q"},
		"what is not there":            {[]string{allowOn("Allow", "*", on("*"))}, "DescribeGameSessionPlacement", &gamelift.DescribeGameSessionPlacementInput{PlacementId: aws.String("p-9")}, "*"},
		"tags of a fleet":              {[]string{all, deny("fleet/" + other)}, "TagResource", &gamelift.TagResourceInput{ResourceARN: aws.String(oddly("fleet/" + other)), Tags: []types.Tag{}}, "fleet/" + other},
		"tags of a compute":            {[]string{all, deny("fleet/" + mine)}, "UntagResource", &gamelift.UntagResourceInput{ResourceARN: aws.String(oddly("compute/DesktopPC")), TagKeys: []string{"a"}}, "fleet/" + mine},
		"a denied tag":                 {[]string{all, allowOn("Deny", "*", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}`)}, "DeleteFleet", &gamelift.DeleteFleetInput{FleetId: &other}, "fleet/" + other},
		"a denied tag, elsewhere":      {[]string{all, allowOn("Deny", "*", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}`)}, "DescribeFleetCapacity", &gamelift.DescribeFleetCapacityInput{FleetIds: []string{mine}}, ""},
		"a denied tag of the fleet of a compute": {[]string{all, allowOn("Deny", "*", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/env":"prod"}}`)}, "TagResource",
			&gamelift.TagResourceInput{ResourceARN: aws.String(oddly("compute/" + other + "/rack")), Tags: []types.Tag{{Key: aws.String("muster:drain"), Value: aws.String("true")}}}, "fleet/" + other},
		"a tag of a compute": {[]string{allowOn("Allow", "*", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/team":"a"}}`)}, "TagResource",
			&gamelift.TagResourceInput{ResourceARN: aws.String(oddly("compute/" + other + "/rack")), Tags: []types.Tag{{Key: aws.String("muster:drain"), Value: aws.String("true")}}}, ""},
		"an alias that is moved to a denied fleet":     {[]string{all, deny("fleet/" + other)}, "UpdateAlias", &gamelift.UpdateAliasInput{AliasId: &alias, RoutingStrategy: simple(other)}, "fleet/" + other},
		"a new alias of a denied fleet":                {[]string{all, deny("fleet/" + other)}, "CreateAlias", &gamelift.CreateAliasInput{Name: aws.String("x"), RoutingStrategy: simple(oddly("fleet/" + other))}, "fleet/" + other},
		"an alias that is renamed":                     {[]string{all, deny("fleet/" + mine)}, "UpdateAlias", &gamelift.UpdateAliasInput{AliasId: &alias, Name: aws.String("x")}, ""},
		"a queue that leads to a denied fleet":         {[]string{all, deny("fleet/" + mine)}, "CreateGameSessionQueue", &gamelift.CreateGameSessionQueueInput{Name: aws.String("x"), Destinations: leadingTo("arn:aws:gamelift:us-east-1::fleet/"+other, "x/"+mine)}, "fleet/" + mine},
		"a queue that leads to it by an alias":         {[]string{all, deny("fleet/" + mine)}, "UpdateGameSessionQueue", &gamelift.UpdateGameSessionQueueInput{Name: aws.String("q"), Destinations: leadingTo(oddly("alias/" + alias))}, "fleet/" + mine},
		"a queue that keeps its destinations":          {[]string{all, deny("fleet/" + mine)}, "UpdateGameSessionQueue", &gamelift.UpdateGameSessionQueueInput{Name: aws.String("q"), TimeoutInSeconds: aws.Int32(7)}, ""},
		"a configuration that leads to a denied queue": {[]string{all, deny("gamesessionqueue/q")}, "UpdateMatchmakingConfiguration", &gamelift.UpdateMatchmakingConfigurationInput{Name: aws.String("duel"), GameSessionQueueArns: []string{"x/q"}}, "gamesessionqueue/q"},
		"a new one that does":                          {[]string{all, deny("gamesessionqueue/q")}, "CreateMatchmakingConfiguration", &gamelift.CreateMatchmakingConfigurationInput{Name: aws.String("duel"), RuleSetName: aws.String("r"), GameSessionQueueArns: []string{oddly("gamesessionqueue/q")}}, "gamesessionqueue/q"},
		"a forged tag": {[]string{allowOn("Allow", "*", "*", `,"Condition":{"StringEquals":{"aws:ResourceTag/env":"test"}}`)}, "TagResource",
			&gamelift.TagResourceInput{ResourceARN: aws.String(oddly("fleet/" + other)), Tags: []types.Tag{{Key: aws.String("env"), Value: aws.String("test")}}}, "fleet/" + other},
		"a tag of the request": {[]string{allowOn("Allow", "gamelift:CreateFleet", on("fleet/*"), `,"Condition":{"StringEquals":{"aws:RequestTag/env":"test"}}`)}, "CreateFleet",
			&gamelift.CreateFleetInput{Name: aws.String("x"), Tags: []types.Tag{{Key: aws.String("env"), Value: aws.String("test")}}}, ""},
		"without the tag": {[]string{allowOn("Allow", "gamelift:CreateFleet", on("fleet/*"), `,"Condition":{"StringEquals":{"aws:RequestTag/env":"test"}}`)}, "CreateFleet", &gamelift.CreateFleetInput{Name: aws.String("x")}, "fleet/*"},
		"another network": {[]string{allowOn("Allow", "gamelift:*", "*", `,"Condition":{"IpAddress":{"aws:SourceIp":"198.51.100.0/24"}}`)}, "ListFleets", &gamelift.ListFleetsInput{}, "*"},
	} {
		caller := restricted(t, identity.Admin, x.statements...)
		err := mayDo(&requestContext{Context: ctx, caller: caller}, h.service, compiledOperations()[x.operation], &caller, x.in)
		got := ""
		if denied, ok := err.(*identity.Denied); ok {
			if got = denied.Resource; got != "*" {
				got = got[strings.LastIndexByte(got, ':')+1:]
			}
		} else if err != nil {
			got = err.Error()
		}
		if got != x.denied {
			t.Errorf("%s: denied %q, want %q", what, got, x.denied)
		}
	}
}

// A denial has AWS's code and text on the wire.
func TestDenialOnTheWire(t *testing.T) {
	h := newHall(t, time.Hour)
	keys := identity.NewKeys(h.secret, time.Now)
	keys.Publish([]access.Key{{ID: "MUSTCI", Role: identity.Admin, Account: "123456789012"}})
	text := `{"Version":"2012-10-17","Statement":[` + allowOn("Allow", "gamelift:List*", "*") + `,` + allowOn("Deny", "gamelift:listBUILDS", "*", `,"Sid":"NoBuilds"`) + `]}`
	if err := keys.PublishPolicies([]access.Policy{{Name: "ci", Text: text}}, []access.PolicyAttachment{{Policy: "ci", Target: access.Target{Kind: access.RoleTarget, Name: "admin"}}}); err != nil {
		t.Fatal(err)
	}
	key, _ := keys.Find("MUSTCI")
	sdk := sdkClient(startServer(t, NewHandler(h.service, Config{Keys: keys, Log: testLog(t)})), key)
	must(sdk.ListFleets(t.Context(), &gamelift.ListFleetsInput{}))(t)
	_, err := sdk.ListBuilds(t.Context(), &gamelift.ListBuildsInput{})
	saying(t, err, `User: arn:aws:iam::123456789012:user/admin/MUSTCI is not authorized to perform: gamelift:ListBuilds on resource: * with an explicit deny in statement "NoBuilds" of policy ci`)
	_, err = sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: aws.String("fleet-1")})
	saying(t, err, "is not authorized to perform: gamelift:DeleteFleet on resource: arn:aws:gamelift:"+sdk.Options().Region+":123456789012:fleet/fleet-1 because no identity-based policy allows the gamelift:DeleteFleet action")
}

func saying(t *testing.T, err error, text string) {
	t.Helper()
	refused(t, err, "AccessDeniedException")
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want\n%s", err, text)
	}
}

// BenchmarkPolicies measures what policies add to a request for a fleet: nothing without them, and with them a read of the state and the decision.
func BenchmarkPolicies(b *testing.B) {
	e := enginetest.Open(b, engine.Config{Cell: cell.DefaultConfig()})
	f := fleet.Fleet{ID: "fleet-1", Region: "eu-central-1", Account: "123456789012", Name: "f", Tags: []fleet.Tag{{Key: "env", Value: "dev"}}}
	for _, cmd := range []kernel.Command{&hosting.CreateLocation{Name: "custom-home"}, &hosting.CreateFleet{Fleet: f, Locations: []string{"custom-home"}}} {
		if err := e.Do(b.Context(), cmd); err != nil {
			b.Fatal(err)
		}
	}
	s, op := &Service{engine: e}, compiledOperations()["RegisterCompute"]
	in := &gamelift.RegisterComputeInput{FleetId: aws.String("arn:aws:gamelift:eu-central-1:123456789012:fleet/fleet-1"), ComputeName: aws.String("host-1")}
	allow := allowOn("Allow", "gamelift:Register*", "arn:aws:gamelift:*:*:fleet/fleet-1", `,"Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"},"StringEquals":{"aws:ResourceTag/env":"dev"}}`)
	for name, statements := range map[string][]string{"without": nil, "one statement": {allow}, "ten statements": slices.Repeat([]string{allow}, 10)} {
		b.Run(name, func(b *testing.B) {
			caller := Caller{Region: "eu-central-1"}
			if statements != nil {
				caller = restricted(b, identity.Admin, statements...)
			}
			ctx := &requestContext{Context: b.Context(), caller: caller}
			b.ReportAllocs()
			for b.Loop() {
				if !caller.Restricted() {
					continue
				}
				if err := mayDo(ctx, s, op, &caller, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
