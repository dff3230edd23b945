package gamelift

import (
	"cmp"
	"encoding/hex"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
	"github.com/google/uuid"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/waittest"
)

const nowhere = "fleet-00000000-0000-4000-8000-000000000000"

func TestLocations(t *testing.T) {
	h := newHall(t, time.Hour)
	for _, name := range []string{"custom-c", "custom-a", "custom-b"} {
		out := must(h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: &name}))(t)
		if want := "arn:aws:gamelift:eu-central-1:123456789012:location/" + name; *out.Location.LocationArn != want || *out.Location.LocationName != name {
			t.Errorf("got %+v, want %s", out.Location, want)
		}
	}
	_, err := h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-a")})
	refused(t, err, "ConflictException")
	_, err = h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-a_b")})
	refused(t, err, codeInvalidRequest)

	var names []string
	pages := gamelift.NewListLocationsPaginator(h.sdk, &gamelift.ListLocationsInput{Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		page := must(pages.NextPage(t.Context()))(t)
		for _, l := range page.Locations {
			names = append(names, *l.LocationName)
		}
	}
	if !slices.Equal(names, []string{"custom-a", "custom-b", "custom-c"}) {
		t.Errorf("got %v", names)
	}
	if got := h.json.call(t, "ListLocations", `{"Filters":["AWS"]}`); got.raw != `{"Locations":[]}` {
		t.Errorf("got %s", got.raw)
	}

	_, err = h.sdk.DeleteLocation(t.Context(), &gamelift.DeleteLocationInput{LocationName: aws.String("arn:aws:gamelift:mars-1:1:location/custom-a")})
	if err != nil {
		t.Error(err)
	}
	_, err = h.sdk.DeleteLocation(t.Context(), &gamelift.DeleteLocationInput{LocationName: aws.String("custom-a")})
	refused(t, err, "NotFoundException")
}

func TestFleetIsGivenBackAsItWasMade(t *testing.T) {
	h := newHall(t, time.Hour)
	must(h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")}))(t)
	out := must(h.sdk.CreateFleet(t.Context(), &gamelift.CreateFleetInput{
		Name: aws.String("dev"), Description: aws.String("for trying"), ComputeType: types.ComputeTypeAnywhere,
		Locations:                      []types.LocationConfiguration{{Location: aws.String("custom-home")}},
		CertificateConfiguration:       &types.CertificateConfiguration{CertificateType: types.CertificateTypeGenerated},
		AnywhereConfiguration:          &types.AnywhereConfiguration{Cost: aws.String("0.25")},
		NewGameSessionProtectionPolicy: types.ProtectionPolicyFullProtection,
		ResourceCreationLimitPolicy:    &types.ResourceCreationLimitPolicy{NewGameSessionsPerCreator: aws.Int32(3), PolicyPeriodInMinutes: aws.Int32(15)},
		MetricGroups:                   []string{"all"},
		Tags:                           []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
	}))(t)
	f := out.FleetAttributes
	if !strings.HasPrefix(*f.FleetId, "fleet-") || *f.FleetArn != "arn:aws:gamelift:eu-central-1:123456789012:fleet/"+*f.FleetId {
		t.Errorf("got %s %s", *f.FleetId, *f.FleetArn)
	}
	if len(out.LocationStates) != 1 || *out.LocationStates[0].Location != "custom-home" || out.LocationStates[0].Status != types.FleetStatusActive {
		t.Errorf("got locations %+v", out.LocationStates)
	}
	got := h.json.call(t, "DescribeFleetAttributes", `{"FleetIds":["`+*f.FleetArn+`"]}`)
	created := got.body["FleetAttributes"].([]any)[0].(map[string]any)["CreationTime"]
	delete(got.body["FleetAttributes"].([]any)[0].(map[string]any), "CreationTime")
	if seconds := created.(float64); seconds < 1.7e9 || seconds > 1e10 {
		t.Errorf("CreationTime is %v", created)
	}
	want := `{"FleetAttributes":[{"AnywhereConfiguration":{"Cost":"0.25"},"CertificateConfiguration":{"CertificateType":"GENERATED"},"ComputeType":"ANYWHERE",` +
		`"Description":"for trying","FleetArn":"` + *f.FleetArn + `","FleetId":"` + *f.FleetId + `","MetricGroups":["all"],"Name":"dev",` +
		`"NewGameSessionProtectionPolicy":"FullProtection","ResourceCreationLimitPolicy":{"NewGameSessionsPerCreator":3,"PolicyPeriodInMinutes":15},"Status":"ACTIVE"}]}`
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestCreateFleetRefuses(t *testing.T) {
	h := newHall(t, time.Hour)
	for _, each := range []struct{ name, body, code, text string }{
		{"neither type", `{"Name":"n"}`, codeInvalidRequest, "BuildId: required"},
		{"a script", `{"Name":"n","ScriptId":"script-1"}`, "NotFoundException", "script-1"},
		{"unknown build", `{"Name":"n","BuildId":"build-1","EC2InstanceType":"c5.large"}`, "NotFoundException", "build-1"},
		{"two ways to launch", `{"Name":"n","BuildId":"build-1","ServerLaunchPath":"/local/game/a","RuntimeConfiguration":{"MaxConcurrentGameSessionActivations":1}}`, codeInvalidRequest, "ServerLaunchPath"},
		{"a firewall", `{"Name":"n","BuildId":"build-1","EC2InboundPermissions":[{"FromPort":1,"ToPort":2,"IpRange":"0.0.0.0/0","Protocol":"UDP"}]}`, codeInvalidRequest, "EC2InboundPermissions"},
		{"processes", `{"Name":"n","ComputeType":"ANYWHERE","Locations":[{"Location":"custom-x"}],"RuntimeConfiguration":{"ServerProcesses":[]}}`, codeInvalidRequest, "ServerProcesses"},
		{"no location", `{"Name":"n","ComputeType":"ANYWHERE"}`, codeInvalidRequest, "Locations"},
		{"unknown location", `{"Name":"n","ComputeType":"ANYWHERE","Locations":[{"Location":"custom-x"}]}`, "NotFoundException", "custom-x"},
		{"a build", `{"Name":"n","ComputeType":"ANYWHERE","BuildId":"build-1","Locations":[{"Location":"custom-x"}]}`, codeInvalidRequest, "BuildId"},
	} {
		got := h.json.call(t, "CreateFleet", each.body)
		if got.body["__type"] != each.code || !strings.Contains(got.raw, each.text) {
			t.Errorf("%s: got %s, want %s with %q", each.name, got.raw, each.code, each.text)
		}
	}
}

func TestFleetsArePaged(t *testing.T) {
	h := newHall(t, time.Hour)
	must(h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-home")}))(t)
	var made, listed, described []string
	for range 5 {
		out := must(h.sdk.CreateFleet(t.Context(), &gamelift.CreateFleetInput{
			Name: aws.String("dev"), ComputeType: types.ComputeTypeAnywhere, Locations: []types.LocationConfiguration{{Location: aws.String("custom-home")}},
		}))(t)
		made = append(made, *out.FleetAttributes.FleetId)
		h.later(time.Millisecond) // fleets of one millisecond are ordered by id
	}
	ids := gamelift.NewListFleetsPaginator(h.sdk, &gamelift.ListFleetsInput{Limit: aws.Int32(2)})
	for ids.HasMorePages() {
		listed = append(listed, must(ids.NextPage(t.Context()))(t).FleetIds...)
	}
	if !slices.Equal(listed, made) {
		t.Errorf("listed %v, made %v", listed, made)
	}
	attributes := gamelift.NewDescribeFleetAttributesPaginator(h.sdk, &gamelift.DescribeFleetAttributesInput{Limit: aws.Int32(3)})
	for attributes.HasMorePages() {
		for _, f := range must(attributes.NextPage(t.Context()))(t).FleetAttributes {
			described = append(described, *f.FleetId)
		}
	}
	if !slices.Equal(described, made) {
		t.Errorf("described %v, made %v", described, made)
	}
	first := must(h.sdk.ListFleets(t.Context(), &gamelift.ListFleetsInput{Limit: aws.Int32(2)}))(t)
	_, err := h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{NextToken: first.NextToken})
	refused(t, err, codeInvalidRequest)
	if got := h.json.call(t, "ListFleets", `{"BuildId":"build-1"}`); got.raw != `{"FleetIds":[]}` {
		t.Errorf("got %s", got.raw)
	}
}

// Tools that wait until a fleet is gone, such as Terraform, ask until no object is returned.
func TestFleetsThatDoNotExistAreLeftOut(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	for operation, member := range map[string]string{
		"DescribeFleetAttributes": "FleetAttributes", "DescribeFleetCapacity": "FleetCapacity", "DescribeFleetUtilization": "FleetUtilization",
	} {
		if got := h.json.call(t, operation, `{"FleetIds":["`+nowhere+`"]}`); got.raw != `{"`+member+`":[]}` {
			t.Errorf("%s of a fleet that does not exist: got %d %s", operation, got.status, got.raw)
		}
		got := h.json.call(t, operation, `{"FleetIds":["`+nowhere+`","`+id+`"]}`)
		if list, _ := got.body[member].([]any); len(list) != 1 || list[0].(map[string]any)["FleetId"] != id {
			t.Errorf("%s of a fleet and one that does not exist: got %d %s", operation, got.status, got.raw)
		}
	}
}

func TestUpdateFleetKeepsTheRest(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	must(h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{
		FleetId: &id, Description: aws.String("new"), NewGameSessionProtectionPolicy: types.ProtectionPolicyFullProtection,
	}))(t)
	f := must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{id}}))(t).FleetAttributes[0]
	if *f.Name != "dev" || *f.Description != "new" || f.NewGameSessionProtectionPolicy != types.ProtectionPolicyFullProtection ||
		!slices.Equal(f.MetricGroups, []string{"default"}) || f.CertificateConfiguration.CertificateType != types.CertificateTypeDisabled {
		t.Errorf("got %+v", f)
	}
	for _, groups := range [][]string{{"all"}, {}} { // an empty list means the default, as in CreateFleet
		must(h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{FleetId: &id, MetricGroups: groups}))(t)
		f := must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{id}}))(t).FleetAttributes[0]
		if want := cmp.Or(strings.Join(groups, ","), "default"); strings.Join(f.MetricGroups, ",") != want {
			t.Errorf("MetricGroups %q: got %q, want %s", groups, f.MetricGroups, want)
		}
	}
	_, err := h.sdk.UpdateFleetAttributes(t.Context(), &gamelift.UpdateFleetAttributesInput{FleetId: aws.String(nowhere)})
	refused(t, err, "NotFoundException")
}

func TestFleetLocations(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	must(h.sdk.CreateLocation(t.Context(), &gamelift.CreateLocationInput{LocationName: aws.String("custom-away")}))(t)
	away := []types.LocationConfiguration{{Location: aws.String("custom-away")}}
	added := must(h.sdk.CreateFleetLocations(t.Context(), &gamelift.CreateFleetLocationsInput{FleetId: &id, Locations: away}))(t)
	if len(added.LocationStates) != 1 || added.LocationStates[0].Status != types.FleetStatusActive {
		t.Errorf("got %+v", added.LocationStates)
	}
	_, err := h.sdk.CreateFleetLocations(t.Context(), &gamelift.CreateFleetLocationsInput{FleetId: &id, Locations: away})
	refused(t, err, "ConflictException")
	_, err = h.sdk.DeleteLocation(t.Context(), &gamelift.DeleteLocationInput{LocationName: aws.String("custom-away")})
	refused(t, err, codeInvalidRequest)

	got := h.json.call(t, "DescribeFleetLocationAttributes", `{"FleetId":"`+id+`"}`)
	want := `"LocationAttributes":[{"LocationState":{"Location":"custom-home","Status":"ACTIVE"}},{"LocationState":{"Location":"custom-away","Status":"ACTIVE"}}]`
	if !strings.Contains(got.raw, want) {
		t.Errorf("got %s, want %s", got.raw, want)
	}
	_, err = h.sdk.DescribeFleetLocationAttributes(t.Context(), &gamelift.DescribeFleetLocationAttributesInput{FleetId: &id, Locations: []string{"custom-x"}})
	refused(t, err, "NotFoundException")

	_, err = h.sdk.DeleteFleetLocations(t.Context(), &gamelift.DeleteFleetLocationsInput{FleetId: &id, Locations: []string{"custom-away", "custom-away"}})
	refused(t, err, codeInvalidRequest) // as in CreateFleetLocations
	removed := must(h.sdk.DeleteFleetLocations(t.Context(), &gamelift.DeleteFleetLocationsInput{FleetId: &id, Locations: []string{"custom-away"}}))(t)
	if len(removed.LocationStates) != 1 || removed.LocationStates[0].Status != types.FleetStatusDeleting {
		t.Errorf("got %+v", removed.LocationStates)
	}
	_, err = h.sdk.DeleteFleetLocations(t.Context(), &gamelift.DeleteFleetLocationsInput{FleetId: &id, Locations: []string{"custom-home"}})
	refused(t, err, codeInvalidRequest)
}

func TestDeletedFleetKeepsItsEndedSessions(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	game, _ := h.activeGame(id, "p1")
	must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t)
	must(h.sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: &id}))(t)
	waittest.Until(h, "the fleet is gone", func() bool {
		return len(must(h.sdk.ListFleets(t.Context(), &gamelift.ListFleetsInput{}))(t).FleetIds) == 0
	})
	if left := must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{id}}))(t).FleetAttributes; len(left) != 0 {
		t.Errorf("the deleted fleet: got %+v", left)
	}
	_, err := h.sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: &id})
	refused(t, err, "NotFoundException")
	games := must(h.sdk.DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &id}))(t).GameSessions
	if len(games) != 1 || games[0].Status != types.GameSessionStatusTerminated || games[0].TerminationTime == nil || *games[0].CurrentPlayerSessionCount != 0 {
		t.Errorf("got %+v", games)
	}
	players := must(h.sdk.DescribePlayerSessions(t.Context(), &gamelift.DescribePlayerSessionsInput{PlayerId: aws.String("ann")}))(t).PlayerSessions
	if len(players) != 1 || players[0].Status != types.PlayerSessionStatusTimedout {
		t.Errorf("got %+v", players)
	}
}

func TestTags(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	for _, arn := range []string{"arn:aws:gamelift:eu-central-1:123456789012:fleet/" + id, "arn:aws:gamelift:eu-central-1:123456789012:location/custom-home"} {
		must(h.sdk.TagResource(t.Context(), &gamelift.TagResourceInput{ResourceARN: &arn, Tags: []types.Tag{
			{Key: aws.String("b"), Value: aws.String("1")}, {Key: aws.String("a"), Value: aws.String("")},
		}}))(t)
		must(h.sdk.TagResource(t.Context(), &gamelift.TagResourceInput{ResourceARN: &arn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}}))(t)
		if got := h.json.call(t, "ListTagsForResource", `{"ResourceARN":"`+arn+`"}`); got.raw != `{"Tags":[{"Key":"a","Value":""},{"Key":"b","Value":"2"}]}` {
			t.Errorf("%s: got %s", arn, got.raw)
		}
		must(h.sdk.UntagResource(t.Context(), &gamelift.UntagResourceInput{ResourceARN: &arn, TagKeys: []string{"a", "never"}}))(t)
		if got := h.json.call(t, "ListTagsForResource", `{"ResourceARN":"`+arn+`"}`); got.raw != `{"Tags":[{"Key":"b","Value":"2"}]}` {
			t.Errorf("%s: got %s", arn, got.raw)
		}
	}
	for _, arn := range []string{"arn:aws:gamelift:eu-central-1:123456789012:fleet/" + nowhere, "arn:aws:s3:::bucket/x", "x"} {
		_, err := h.sdk.ListTagsForResource(t.Context(), &gamelift.ListTagsForResourceInput{ResourceARN: &arn})
		refused(t, err, "NotFoundException")
		_, err = h.sdk.TagResource(t.Context(), &gamelift.TagResourceInput{ResourceARN: &arn, Tags: []types.Tag{}})
		refused(t, err, "NotFoundException")
	}
}

func TestFleetEvents(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	var codes []string
	pages := gamelift.NewDescribeFleetEventsPaginator(h.sdk, &gamelift.DescribeFleetEventsInput{FleetId: &id, Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, e := range must(pages.NextPage(t.Context()))(t).Events {
			codes = append(codes, string(e.EventCode))
			if *e.ResourceId != id || len(*e.EventId) != 36 || e.EventTime == nil || *e.Count != 1 || *e.Message == "" {
				t.Errorf("got %+v", e)
			}
		}
	}
	if !slices.Equal(codes, []string{"FLEET_STATE_ACTIVE", "LOCATION_STATE_ACTIVE", "FLEET_CREATED"}) {
		t.Errorf("got %v, want the newest first", codes)
	}
	early := time.Now().Add(-time.Hour)
	none := must(h.sdk.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &id, EndTime: &early}))(t)
	if len(none.Events) != 0 {
		t.Errorf("got %+v of an hour ago", none.Events)
	}
	none = must(h.sdk.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &id, EndTime: aws.Time(time.Unix(0, 0))}))(t)
	if len(none.Events) != 0 {
		t.Errorf("got %+v of before 1970", none.Events)
	}
	_, err := h.sdk.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: &id, EndTime: &early, StartTime: aws.Time(time.Now())})
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.DescribeFleetEvents(t.Context(), &gamelift.DescribeFleetEventsInput{FleetId: aws.String(nowhere)})
	refused(t, err, "NotFoundException")
}

// A time that a client got and sends back is the same millisecond, in both codecs: the fraction of 1795759472.12 is 0.1199… in binary.
func TestTimesComeBackToTheMillisecond(t *testing.T) {
	for ms := range int64(1000) {
		sent := time.UnixMilli(1795759472000 + ms).UTC()
		wire := wirePlans{}.plan(reflect.TypeFor[gamelift.DescribeFleetEventsInput]())
		for _, c := range []codec{jsonCodec{}, cborCodec{}} {
			var in gamelift.DescribeFleetEventsInput
			body := c.appendOutput(nil, wire, reflect.ValueOf(&gamelift.DescribeFleetEventsInput{StartTime: &sent}).Elem())
			if err := c.decode(body, &in); err != nil {
				t.Fatal(err)
			}
			if got := timeFromWire(in.StartTime); got != domain.TimeOf(sent) {
				t.Errorf("%T: sent %v, got %v", c, sent, got.Std())
			}
		}
	}
}

// A time beyond the year 9999 is refused, also one of more milliseconds than fit into 64 bits.
func TestFarTimes(t *testing.T) {
	c := compiledOperations()["DescribeFleetEvents"].constraints
	for _, seconds := range []uint64{timeMax + 1, 1<<64/1000 + 1, math.MaxInt64} {
		body := appendCBORString(appendCBORString(appendCBORHead(nil, cborMap, 2), "FleetId"), nowhere)
		body = appendCBORHead(appendCBORHead(appendCBORString(body, "EndTime"), cborTag, cborEpochTag), cborUnsigned, seconds)
		var in gamelift.DescribeFleetEventsInput
		if err := (cborCodec{}).decode(body, &in); err != nil {
			continue
		}
		if err := c.check(&in); err == nil {
			t.Errorf("%d seconds were accepted as %v", seconds, in.EndTime)
		}
	}
}

// Ids of one cell begin with its code, and those of another cell with another one; a router can tell them from the random ids of earlier releases.
func TestIDsCarryTheCode(t *testing.T) {
	codes := map[string]bool{}
	for range 2 {
		h := newHall(t, time.Hour)
		code := h.secret.CellCode()
		want := hex.EncodeToString(code[:])
		codes[want] = true
		fleet := h.anywhere()
		id, err := uuid.Parse(strings.TrimPrefix(fleet, "fleet-"))
		if err != nil || id.Version() != 8 || id.Variant() != uuid.RFC4122 || hex.EncodeToString(id[:2]) != want {
			t.Errorf("fleet %s of cell %s: %v", fleet, want, err)
		}
		out := must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{fleet}}))(t)
		if arn := *out.FleetAttributes[0].FleetArn; !strings.HasSuffix(arn, "/"+fleet) {
			t.Errorf("fleet %s has the ARN %s", fleet, arn)
		}
	}
	if len(codes) != 2 {
		t.Errorf("two cells have the codes %v", codes)
	}
}
