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

	"github.com/musterhq/muster/internal/domain/hosting"
	"github.com/musterhq/muster/internal/domain/placement"
	"github.com/musterhq/muster/internal/waittest"
)

// queue makes a queue over a fleet.
func (h *hall) queue(name, fleetID string, change func(*gamelift.CreateGameSessionQueueInput)) types.GameSessionQueue {
	h.Helper()
	in := &gamelift.CreateGameSessionQueueInput{Name: &name, Destinations: destinationsOf("arn:aws:gamelift:eu-central-1::fleet/" + fleetID)}
	if change != nil {
		change(in)
	}
	return *must(h.sdk.CreateGameSessionQueue(h.Context(), in))(h.T).GameSessionQueue
}

func destinationsOf(arns ...string) (wire []types.GameSessionQueueDestination) {
	for _, arn := range arns {
		wire = append(wire, types.GameSessionQueueDestination{DestinationArn: &arn})
	}
	return wire
}

func TestQueueIsWhatWasCreated(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	arn := "arn:aws:gamelift:eu-central-1:123456789012:fleet/" + id
	got := h.json.call(t, "CreateGameSessionQueue", `{"Name":"q","Destinations":[{"DestinationArn":"`+arn+`"}]}`)
	want := `{"GameSessionQueue":{"Destinations":[{"DestinationArn":"` + arn + `"}],` +
		`"GameSessionQueueArn":"arn:aws:gamelift:eu-central-1:123456789012:gamesessionqueue/q","Name":"q","TimeoutInSeconds":600}}`
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	full := `{"CustomEventData":"data","FilterConfiguration":{"AllowedLocations":["custom-home","eu-west-1"]},"Name":"full",` +
		`"NotificationTarget":"arn:aws:sns:eu-central-1:123456789012:placements.fifo",` +
		`"PlayerLatencyPolicies":[{"MaximumIndividualPlayerLatencyMilliseconds":50,"PolicyDurationSeconds":30},{"MaximumIndividualPlayerLatencyMilliseconds":150}],` +
		`"PriorityConfiguration":{"LocationOrder":["custom-home"],"PriorityOrder":["LOCATION","LATENCY","COST","DESTINATION"]},"TimeoutInSeconds":10}`
	got = h.json.call(t, "CreateGameSessionQueue", full)
	want = `{"GameSessionQueue":` + strings.Replace(full, `"Name":"full"`, `"GameSessionQueueArn":"arn:aws:gamelift:eu-central-1:123456789012:gamesessionqueue/full","Name":"full"`, 1) + `}`
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	// A part of a priority configuration is shown without the other part, so that a client can send the answer back as an update.
	parts := map[string]string{"order": `{"PriorityOrder":["COST"]}`, "locations": `{"LocationOrder":["custom-home"]}`}
	for name, part := range parts {
		h.json.call(t, "CreateGameSessionQueue", `{"Name":"`+name+`","PriorityConfiguration":`+part+`}`)
		got := h.json.call(t, "DescribeGameSessionQueues", `{"Names":["`+name+`"]}`)
		if !strings.Contains(rewritten(t, got.body), `"PriorityConfiguration":`+part+`,`) {
			t.Errorf("got %s, want %s", got.raw, part)
		}
	}
	// Terraform has 0 for a duration that is not set.
	got = h.json.call(t, "CreateGameSessionQueue", strings.NewReplacer(`"Name":"full"`, `"Name":"zero"`, `Milliseconds":150`, `Milliseconds":150,"PolicyDurationSeconds":0`).Replace(full))
	want = strings.NewReplacer(`"Name":"full"`, `"Name":"zero"`, "gamesessionqueue/full", "gamesessionqueue/zero").Replace(want)
	if text := rewritten(t, got.body); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func TestQueueChecks(t *testing.T) {
	h := newHall(t, time.Hour)
	h.queue("taken", h.anywhere(), nil)
	for _, each := range []struct{ name, body, code, text string }{
		{"name taken", `{"Name":"taken"}`, codeInvalidRequest, "taken exists already"},
		{"name", `{"Name":"a b"}`, codeInvalidRequest, "Name"},
		{"unknown fleet", `{"Name":"q","Destinations":[{"DestinationArn":"arn:aws:gamelift:eu-central-1::fleet/` + nowhere + `"}]}`, "NotFoundException", nowhere},
		{"no destination", `{"Name":"q","Destinations":[{}]}`, codeInvalidRequest, "Destinations[0].DestinationArn: required"},
		{"timeout of 0", `{"Name":"q","TimeoutInSeconds":0}`, codeInvalidRequest, "want 10 to 600"},
		{"timeout of 601", `{"Name":"q","TimeoutInSeconds":601}`, codeInvalidRequest, "want 10 to 600"},
		{"no cap", `{"Name":"q","PlayerLatencyPolicies":[{"PolicyDurationSeconds":1}]}`, codeInvalidRequest, "PlayerLatencyPolicies[0].Maximum"},
		{"criterion", `{"Name":"q","PriorityConfiguration":{"PriorityOrder":["BEAUTY"]}}`, codeInvalidRequest, "BEAUTY"},
		{"criterion twice", `{"Name":"q","PriorityConfiguration":{"PriorityOrder":["COST","COST"]}}`, codeInvalidRequest, "PriorityOrder[1]"},
		{"no location order", `{"Name":"q","PriorityConfiguration":{"PriorityOrder":["LOCATION"]}}`, codeInvalidRequest, "LocationOrder: required"},
		{"notification target", `{"Name":"q","NotificationTarget":"http://x/y"}`, codeInvalidRequest, "NotificationTarget"},
		{"event data", `{"Name":"q","CustomEventData":"` + strings.Repeat("x", 257) + `"}`, codeInvalidRequest, "CustomEventData"},
	} {
		got := h.json.call(t, "CreateGameSessionQueue", each.body)
		if got.body["__type"] != each.code || !strings.Contains(got.raw, each.text) {
			t.Errorf("%s: got %s, want %s with %q", each.name, got.raw, each.code, each.text)
		}
	}
}

func TestUpdateQueueMerges(t *testing.T) {
	h := newHall(t, time.Hour)
	fleetID := h.anywhere()
	h.queue("q", fleetID, func(in *gamelift.CreateGameSessionQueueInput) {
		in.TimeoutInSeconds, in.CustomEventData = aws.Int32(60), aws.String("data")
		in.NotificationTarget = aws.String("arn:aws:sns:eu-central-1:123456789012:placements")
		in.FilterConfiguration = &types.FilterConfiguration{AllowedLocations: []string{"custom-home"}}
		in.PriorityConfiguration = &types.PriorityConfiguration{PriorityOrder: []types.PriorityType{types.PriorityTypeCost}}
		in.PlayerLatencyPolicies = []types.PlayerLatencyPolicy{{MaximumIndividualPlayerLatencyMilliseconds: aws.Int32(80)}}
	})
	update := func(in gamelift.UpdateGameSessionQueueInput) (*gamelift.UpdateGameSessionQueueOutput, error) {
		in.Name = aws.String("arn:aws:gamelift:eu-central-1:123456789012:gamesessionqueue/q")
		return h.sdk.UpdateGameSessionQueue(t.Context(), &in)
	}
	q := must(update(gamelift.UpdateGameSessionQueueInput{TimeoutInSeconds: aws.Int32(120)}))(t).GameSessionQueue
	if *q.TimeoutInSeconds != 120 || *q.CustomEventData != "data" || q.NotificationTarget == nil || len(q.Destinations) != 1 ||
		q.FilterConfiguration == nil || q.PriorityConfiguration == nil || len(q.PlayerLatencyPolicies) != 1 {
		t.Errorf("what was not given changed: %+v", q)
	}
	q = must(update(gamelift.UpdateGameSessionQueueInput{
		CustomEventData: aws.String(""), NotificationTarget: aws.String(""), Destinations: []types.GameSessionQueueDestination{},
		FilterConfiguration: &types.FilterConfiguration{}, PriorityConfiguration: &types.PriorityConfiguration{}, PlayerLatencyPolicies: []types.PlayerLatencyPolicy{},
	}))(t).GameSessionQueue
	if q.CustomEventData != nil || q.NotificationTarget != nil || len(q.Destinations) != 0 || q.FilterConfiguration != nil ||
		q.PriorityConfiguration != nil || len(q.PlayerLatencyPolicies) != 0 || *q.TimeoutInSeconds != 120 {
		t.Errorf("empty did not clear: %+v", q)
	}
	_, err := update(gamelift.UpdateGameSessionQueueInput{TimeoutInSeconds: aws.Int32(9)})
	refused(t, err, codeInvalidRequest)
	_, err = update(gamelift.UpdateGameSessionQueueInput{Destinations: destinationsOf(nowhere)})
	refused(t, err, "NotFoundException")
	_, err = update(gamelift.UpdateGameSessionQueueInput{Destinations: destinationsOf(slices.Repeat([]string{"arn:aws:gamelift:eu-central-1::fleet/" + fleetID}, 101)...)})
	refused(t, err, codeInvalidRequest) // the model does not let a limit be said here
	_, err = h.sdk.UpdateGameSessionQueue(t.Context(), &gamelift.UpdateGameSessionQueueInput{Name: aws.String("other")})
	refused(t, err, "NotFoundException")
}

// A queue outlives the fleets that it names, and may be changed then, too.
func TestUpdateQueueOverADeadFleet(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	h.queue("q", id, nil)
	must(h.sdk.DeleteFleet(t.Context(), &gamelift.DeleteFleetInput{FleetId: &id}))(t)
	waittest.Until(h, "the fleet is gone", func() bool {
		return len(must(h.sdk.DescribeFleetAttributes(t.Context(), &gamelift.DescribeFleetAttributesInput{FleetIds: []string{id}}))(t).FleetAttributes) == 0
	})
	must(h.sdk.UpdateGameSessionQueue(t.Context(), &gamelift.UpdateGameSessionQueueInput{Name: aws.String("q"), TimeoutInSeconds: aws.Int32(20)}))(t)
	_, err := h.sdk.UpdateGameSessionQueue(t.Context(), &gamelift.UpdateGameSessionQueueInput{
		Name: aws.String("q"), Destinations: destinationsOf("arn:aws:gamelift:eu-central-1::fleet/" + id),
	})
	refused(t, err, "NotFoundException")
	must(h.place("q", "p1", nil))(t)
}

func TestQueuesAreListed(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	var all []string
	for i := range 53 {
		all = append(all, fmt.Sprintf("queue-%02d", i))
		h.queue(all[i], id, nil)
	}
	list := func(in gamelift.DescribeGameSessionQueuesInput) (names []string) {
		pages := gamelift.NewDescribeGameSessionQueuesPaginator(h.sdk, &in)
		for pages.HasMorePages() {
			page := must(pages.NextPage(t.Context()))(t)
			if len(page.GameSessionQueues) > 50 {
				t.Errorf("a page of %d", len(page.GameSessionQueues))
			}
			for _, q := range page.GameSessionQueues {
				names = append(names, *q.Name)
			}
		}
		return names
	}
	if got := list(gamelift.DescribeGameSessionQueuesInput{}); !slices.Equal(got, all) {
		t.Errorf("got %v", got)
	}
	if got := list(gamelift.DescribeGameSessionQueuesInput{Limit: aws.Int32(7)}); !slices.Equal(got, all) {
		t.Errorf("in small pages: got %v", got)
	}
	named := []string{"queue-03", "none", "arn:aws:gamelift:eu-central-1:123456789012:gamesessionqueue/queue-01", "queue-00", "queue-01", "queue-03"}
	for _, limit := range []*int32{nil, aws.Int32(1)} {
		if got := list(gamelift.DescribeGameSessionQueuesInput{Names: named, Limit: limit}); !slices.Equal(got, []string{"queue-03", "queue-01", "queue-00"}) {
			t.Errorf("named: got %v", got)
		}
	}
	_, err := h.sdk.DescribeGameSessionQueues(t.Context(), &gamelift.DescribeGameSessionQueuesInput{NextToken: aws.String("x")})
	refused(t, err, codeInvalidRequest)
}

func TestDeleteQueue(t *testing.T) {
	h := newHall(t, time.Hour)
	h.queue("q", h.anywhere(), nil)
	must(h.place("q", "p1", nil))(t)
	for i := range 1500 { // more than one command ends
		h.do(&hosting.StartPlacement{Placement: placement.Placement{ID: fmt.Sprint("more-", i), Queue: "q", PlayersMax: 2}})
	}
	must(h.sdk.DeleteGameSessionQueue(t.Context(), &gamelift.DeleteGameSessionQueueInput{Name: aws.String("q")}))(t)
	if p := h.placed("p1"); p.Status != types.GameSessionPlacementStateFailed || p.EndTime == nil {
		t.Errorf("its placement: got %+v", p)
	}
	_, err := h.sdk.DeleteGameSessionQueue(t.Context(), &gamelift.DeleteGameSessionQueueInput{Name: aws.String("q")})
	refused(t, err, "NotFoundException")
}

func TestQueueHasTags(t *testing.T) {
	h := newHall(t, time.Hour)
	q := h.queue("q", h.anywhere(), func(in *gamelift.CreateGameSessionQueueInput) {
		in.Tags = []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}}
	})
	must(h.sdk.TagResource(t.Context(), &gamelift.TagResourceInput{
		ResourceARN: q.GameSessionQueueArn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}},
	}))(t)
	must(h.sdk.UntagResource(t.Context(), &gamelift.UntagResourceInput{ResourceARN: q.GameSessionQueueArn, TagKeys: []string{"a"}}))(t)
	tags := must(h.sdk.ListTagsForResource(t.Context(), &gamelift.ListTagsForResourceInput{ResourceARN: q.GameSessionQueueArn}))(t).Tags
	if len(tags) != 1 || *tags[0].Key != "b" || *tags[0].Value != "2" {
		t.Errorf("got %v", tags)
	}
	_, err := h.sdk.ListTagsForResource(t.Context(), &gamelift.ListTagsForResourceInput{ResourceARN: aws.String(*q.GameSessionQueueArn + "x")})
	refused(t, err, "NotFoundException")
}
