package gamelift

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"

	"github.com/musterhq/muster/internal/gamelift/model"
)

// monkey makes inputs out of what exists, what once existed and what never did.
type monkey struct {
	*rand.Rand
	words map[string][]string // by the member's name; "" for all others
}

func (m *monkey) pick(name string) string {
	words, ok := m.words[name]
	if !ok {
		words = m.words[""]
	}
	return words[m.IntN(len(words))]
}

func (m *monkey) fill(v reflect.Value, name string, shape model.Shape) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		m.fill(v.Elem(), name, shape)
	case reflect.String:
		v.SetString(m.pick(name))
		if len(shape.Enum) > 0 {
			v.SetString(shape.Enum[m.IntN(len(shape.Enum))])
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(m.Int64N(5))
	case reflect.Bool:
		v.SetBool(m.IntN(2) == 0)
	case reflect.Slice:
		if shape.Type != "list" {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1+m.IntN(2), 2))
		for i := range v.Len() {
			m.fill(v.Index(i), name, model.Load().Shapes[shape.Member])
		}
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(time.Now().Add(time.Duration(m.IntN(3)-1) * time.Hour)))
			return
		}
		for _, member := range slices.Sorted(maps.Keys(shape.Members)) { // in order, so that a seed says it all
			if m.IntN(2) == 0 || slices.Contains(shape.Required, member) {
				m.fill(v.FieldByName(member), member, model.Load().Shapes[shape.Members[member]])
			}
		}
	}
}

// For every request in every state, the answer is one that the model lists: the handler logs any other, and the
// hall's log fails the test.
func TestNoOperationAnswersAnUndeclaredError(t *testing.T) {
	h := newHall(t, time.Millisecond)
	fleetID, going := h.anywhere(), h.anywhereElse()
	live, _ := h.activeGame(fleetID, "p1")
	activating := must(h.sdk.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
		FleetId: aws.String(h.serverReady(fleetID, "p2").Fleet), Location: aws.String("custom-home"), MaximumPlayerSessionCount: aws.Int32(1),
	}))(t).GameSession
	player := must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: live.GameSessionId, PlayerId: aws.String("ann")}))(t)
	fleets := []string{fleetID, going, nowhere, *live.FleetArn}
	games := []string{*live.GameSessionId, *activating.GameSessionId, "arn:aws:gamelift:eu::gamesession/" + nowhere + "/custom-home/x", "x"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &monkey{Rand: rand.New(rand.NewPCG(seed, 0)), words: map[string][]string{
		"": {"custom-home", "custom-x1", "x", "ann"}, "FleetId": fleets, "FleetIds": fleets, "GameSessionId": games,
		"Location": {"custom-home", "custom-away", "custom-x1"}, "Locations": {"custom-home", "custom-away", "custom-x1"},
		"LocationName": {"custom-home", "custom-x1"}, "ComputeName": {"DesktopPC", "x"}, "IpAddress": {"::1"},
		"PlayerSessionId": {*player.PlayerSession.PlayerSessionId, "psess-x"}, "AliasId": {"alias-1"}, "Cost": {"1.5"},
		"ResourceARN":  {*live.FleetArn, "arn:aws:gamelift:eu:1:location/custom-home", "arn:aws:gamelift:eu:1:fleet/" + nowhere, "x"},
		"StatusFilter": {"ACTIVE", "TERMINATED", "x"}, "PlayerSessionStatusFilter": {"ACTIVE", "x"}, "NextToken": {"x"},
	}}
	plans := wirePlans{}
	for range 25 {
		for _, op := range operations {
			if op.name == "DeleteFleet" && m.IntN(10) > 0 {
				continue
			}
			in := op.make()
			m.fill(reflect.ValueOf(in).Elem(), "", model.Load().Shapes[model.Load().Operations[op.name].Input])
			body := jsonCodec{}.appendOutput(nil, plans.plan(op.input), reflect.ValueOf(in).Elem())
			got := h.json.call(t, op.name, string(body))
			if got.status != http.StatusOK && got.status != http.StatusBadRequest {
				t.Errorf("%s %s: got %d %s", op.name, body, got.status, got.raw)
			}
			code, _ := got.body["__type"].(string)
			if got.status != http.StatusOK && code != codeSerialization && !slices.Contains(model.Load().Operations[op.name].Errors, code) {
				t.Errorf("%s %s: got %s, which it does not declare", op.name, body, got.raw)
			}
		}
	}
}

// anywhereElse makes a fleet that is being deleted.
func (h *hall) anywhereElse() string {
	h.Helper()
	id := h.fleetIn("custom-home")
	must(h.sdk.DeleteFleet(h.Context(), &gamelift.DeleteFleetInput{FleetId: &id}))(h.T)
	return id
}
