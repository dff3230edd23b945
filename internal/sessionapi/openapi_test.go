package sessionapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterhq/muster/mustertest"
)

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	srv := mustertest.Start(t, mustertest.Signed())
	got, err := http.Get(srv.Endpoint() + "/session/v1/openapi.json") // needs no key
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			RequestBody struct {
				Content map[string]struct {
					Schema struct{ Properties map[string]any }
				}
			}
			Responses map[string]any
		}
	}
	if err := json.Unmarshal(text, &d); err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("got %.300s: %v", text, err)
	}
	for node, names := range map[string]string{
		"ConfigureGameLiftClient": "region",
		"CreatePlayerId":          "includeBrackets includeDashes",
		"GetResourceNameId":       "name",
		"CreateSession":           "aliasId creatorId fleetId idempotencyToken location maxPlayer sessionData sessionName sessionProperties",
		"CreateSessionOnQueue":    "creatorId latencies maxPlayer placementId players queueName sessionData sessionName sessionProperties wait",
		"SearchSessions":          "aliasId filterExpression fleetId location maxResult nextToken sortExpression",
		"JoinSession":             "playerData playerId sessionId",
		"LeaveSession":            "playerSessionId",
		"StartMatchmaking":        "configurationName players ticketId",
		"StopMatchmaking":         "ticketId",
		"AcceptMatch":             "acceptMatch playerIds ticketId",
		"StartPolling":            "playerId ticketId",
		"StopPolling":             "ticketId",
	} {
		operation := d.Paths["/session/v1/"+node]["post"]
		properties := operation.RequestBody.Content["application/json"].Schema.Properties
		if operation.OperationID != node || operation.Responses["200"] == nil || len(properties) != len(strings.Fields(names)) {
			t.Errorf("%s: got %+v", node, operation)
		}
		for name := range strings.FieldsSeq(names) {
			if properties[name] == nil {
				t.Errorf("%s has no field %s", node, name)
			}
		}
	}
	for _, path := range []string{"placements/{id}", "tickets/{id}", "calls/{id}", "events"} {
		if d.Paths["/session/v1/"+path]["get"].Responses["200"] == nil {
			t.Errorf("%s is not described", path)
		}
	}
}
