package calls

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/playerapi/events"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// The documents are huma's, with three additions: answers are open, so that a later service may add fields; every call lists its
// refusals; and answers list their headers.

// node is an object of a document.
type node = map[string]any

const schemasPath = "#/components/schemas/"

// onceDocuments makes the documents of a realm when they are first requested.
func onceDocuments(api huma.API, name string) func() (newest, older []byte, err error) {
	var newest, older []byte
	var err error
	once := sync.OnceFunc(func() { newest, older, err = documentsOf(api, name) })
	return func() ([]byte, []byte, error) {
		once()
		return newest, older, err
	}
}

// The names of a realm's documents, in OpenAPI 3.1 and 3.0.
const (
	documentName   = "openapi.json"
	document30Name = "openapi-3.0.json"
)

// IsDocument reports whether a path is that of one of the realm's documents.
func (r *Realm) IsDocument(path string) bool {
	return path == r.prefix()+documentName || path == r.prefix()+document30Name
}

// ServeDocument answers a request for a document.
func (r *Realm) ServeDocument(w http.ResponseWriter, request *http.Request) {
	r.mux.ServeHTTP(w, request)
}

func (r *Realm) serveDocument(file string, document func() ([]byte, error)) {
	r.mux.HandleFunc("GET "+r.prefix()+file, func(w http.ResponseWriter, _ *http.Request) {
		text, err := document()
		if err != nil {
			problem.Write(w, problem.Later(flow.Unavailable, problem.Again, "%s", err))
			return
		}
		problem.WriteJSON(w, "application/openapi+json", http.StatusOK, text)
	})
}

// Document returns the OpenAPI document of the realm.
func (r *Realm) Document() ([]byte, error) {
	newest, _, err := r.documents()
	return newest, err
}

// Document30 returns the document in OpenAPI 3.0.3, for generators that cannot read 3.1.
func (r *Realm) Document30() ([]byte, error) {
	_, older, err := r.documents()
	return older, err
}

func documentsOf(api huma.API, name string) (newest, older []byte, err error) {
	text, err := json.Marshal(api.OpenAPI())
	if err != nil {
		return nil, nil, err
	}
	var d node
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, nil, err
	}
	introduce(d, name)
	splitSchemas(d)
	openAnswers(d)
	declareAnswers(d)
	dropUnknown(d)
	if newest, err = json.MarshalIndent(d, "", "  "); err != nil {
		return nil, nil, err
	}
	downgrade(d)
	older, err = json.MarshalIndent(d, "", "  ")
	return newest, older, err
}

var introductions = map[string]string{
	"player": "Calls of players' clients. Every answer has `flow`, the state of the player after the call. Answers may get further " +
		"fields, and further values where `x-extensible-enum` lists those of today: clients must ignore unknown ones.",
	"partner": "Calls of the studio's backend and of game servers. After a game is over, every call about it (`Game.…` and `Server.Exchange`) gets " +
		"GAME_ENDED while the service has the record of the game, and GAME_INSTANCE_NOT_FOUND after that; only a repeat of " +
		"`Game.EndGame` gets the first answer again. Answers may get further fields, and further values where `x-extensible-enum` lists those of today.",
	"operator": "Calls of operators. Each needs a reason and is logged. Answers may get further fields, and further values where " +
		"`x-extensible-enum` lists those of today.",
}

func introduce(d node, name string) {
	info := d["info"].(node)
	info["description"] = introductions[name] + " In a request, null for an optional field means that it is absent."
	info["license"] = node{"name": "Apache 2.0", "identifier": "Apache-2.0"}
	d["servers"] = []any{node{"url": "/", "description": "The service that this document is of."}}
	var tags []any
	seen := map[string]bool{}
	eachOperation(d, func(_ string, o node) {
		for _, tag := range o["tags"].([]any) {
			if !seen[tag.(string)] {
				seen[tag.(string)] = true
				tags = append(tags, node{"name": tag, "description": tagTexts[tag.(string)]})
			}
		}
	})
	d["tags"] = tags
}

var tagTexts = map[string]string{
	"Session": "Login sessions and the events of the player.", "Party": "Friends who play together, and invites.",
	"Matchmaking": "Searches for a match.", "GameInstance": "The game that a player is in, and the way back into it.",
	"Flow": "The state of players, and games that the studio creates.", "Game": "A running game, by its server.", "Server": "Credentials of game servers.",
	"Identity": "Logins of players whom the backend has authenticated.", "Events": "Players' events, for the backend.",
	"Operator": "Calls with which operators read and change the state.",
}

func eachOperation(d node, f func(path string, o node)) {
	paths := d["paths"].(node)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, o := range paths[path].(node) {
			f(path, o.(node))
		}
	}
}

// refsIn calls f with each reference to a schema in a part of a document.
func refsIn(part any, f func(of node, name string)) {
	switch x := part.(type) {
	case node:
		for key, value := range x {
			if text, ok := value.(string); ok && key == "$ref" {
				f(x, strings.TrimPrefix(text, schemasPath))
				continue
			}
			refsIn(value, f)
		}
	case []any:
		for _, value := range x {
			refsIn(value, f)
		}
	}
}

// reached returns the names of the schemas that parts of a document need.
func reached(d node, parts ...any) map[string]bool {
	schemas, all := d["components"].(node)["schemas"].(node), map[string]bool{}
	var look func(part any)
	look = func(part any) {
		refsIn(part, func(_ node, name string) {
			if !all[name] {
				all[name] = true
				look(schemas[name])
			}
		})
	}
	for _, part := range parts {
		look(part)
	}
	return all
}

// bodies returns the bodies of the requests and of the answers.
func bodies(d node) (asked, answered []any) {
	eachOperation(d, func(_ string, o node) {
		asked = append(asked, o["requestBody"])
		answered = append(answered, o["responses"])
	})
	return asked, answered
}

// splitSchemas gives answers a schema of their own where they share one with requests, which allow no unknown fields.
func splitSchemas(d node) {
	schemas := d["components"].(node)["schemas"].(node)
	asked, answered := bodies(d)
	fromRequests := reached(d, asked...)
	for name := range reached(d, answered...) {
		if !fromRequests[name] {
			continue
		}
		own := name + "Answer"
		schemas[own] = deepCopy(schemas[name])
		for _, part := range answered {
			refsIn(part, func(of node, to string) {
				if to == name {
					of["$ref"] = schemasPath + own
				}
			})
		}
	}
}

func deepCopy(part any) any {
	switch x := part.(type) {
	case node:
		c := node{}
		for key, value := range x {
			c[key] = deepCopy(value)
		}
		return c
	case []any:
		c := make([]any, len(x))
		for i, value := range x {
			c[i] = deepCopy(value)
		}
		return c
	}
	return part
}

// openAnswers allows additional fields and values in every schema that no request uses. The type of an event selects its schema, so it stays closed.
func openAnswers(d node) {
	schemas := d["components"].(node)["schemas"].(node)
	asked, _ := bodies(d)
	fromRequests := reached(d, asked...)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if !fromRequests[name] {
			openSchema(schemas[name])
		}
	}
	if event, ok := schemas[events.Name].(node); ok {
		openEvents(schemas, event)
	}
}

func openSchema(part any) {
	switch x := part.(type) {
	case node:
		if closed, ok := x["additionalProperties"].(bool); ok && !closed {
			delete(x, "additionalProperties")
		}
		if values, ok := x["enum"].([]any); ok && len(values) > 1 {
			delete(x, "enum")
			x["x-extensible-enum"] = values
		}
		for _, value := range x {
			openSchema(value)
		}
	case []any:
		for _, value := range x {
			openSchema(value)
		}
	}
}

// otherEventName is the schema of events whose type a later release may add.
const otherEventName = "OtherEvent"

// openEvents allows events of types that are not in the document.
func openEvents(schemas, event node) {
	other := deepCopy(schemas["OnMaintenance"]).(node)
	properties := other["properties"].(node)
	properties["type"] = node{"type": "string"}
	properties["data"] = node{"type": "object", "additionalProperties": true}
	other["description"] = "An event of a type that this document does not have yet."
	schemas[otherEventName] = other
	event["anyOf"] = append(event["oneOf"].([]any), node{"$ref": schemasPath + otherEventName})
	delete(event, "oneOf")
	delete(event, "discriminator") // it would refuse events of other types
}

// commonRefusals are those that every call may return; all others are under default.
var commonRefusals = []struct {
	status int
	text   string
}{
	{400, "INVALID_ARGUMENT: a part of the request is invalid."},
	{401, "UNAUTHENTICATED, SESSION_NOT_FOUND or TOKEN_EXPIRED: log in again."},
	{429, "RATE_LIMITED: too many calls of this kind."},
	{503, "UNAVAILABLE or MAINTENANCE: try again later."},
}

// declareAnswers adds the refusals and headers to the answers of each call.
func declareAnswers(d node) {
	d["components"].(node)["headers"] = node{
		"RateLimit": node{
			"description": "What is left of the rates that the call counts for: r calls at once now, and t seconds until all may be called again (draft-ietf-httpapi-ratelimit-headers-10).",
			"schema":      node{"type": "string"}, "example": `"party";r=9;t=1`,
		},
		"RateLimit-Policy": node{
			"description": "These rates: q calls at once, which fill up again in w seconds.", "schema": node{"type": "string"}, "example": `"party";q=10;w=5`,
		},
		"Retry-After":      node{"description": "Seconds until it is worth another try.", "schema": node{"type": "integer"}},
		"WWW-Authenticate": node{"description": "The scheme of Authorization, which is Bearer.", "schema": node{"type": "string"}, "example": `Bearer realm="muster"`},
	}
	limits := func() node {
		return node{"RateLimit": node{"$ref": "#/components/headers/RateLimit"}, "RateLimit-Policy": node{"$ref": "#/components/headers/RateLimit-Policy"}}
	}
	eachOperation(d, func(_ string, o node) {
		responses := o["responses"].(node)
		other := responses["default"].(node)
		other["description"] = "Any other refusal: see " + problem.CodeName + "."
		for _, x := range commonRefusals {
			refused := deepCopy(other).(node)
			refused["description"] = x.text
			headers := node{}
			switch x.status {
			case 401:
				headers["WWW-Authenticate"] = node{"$ref": "#/components/headers/WWW-Authenticate"}
			case 429:
				headers = limits()
				fallthrough
			case 503:
				headers["Retry-After"] = node{"$ref": "#/components/headers/Retry-After"}
			}
			if len(headers) > 0 {
				refused["headers"] = headers
			}
			responses[fmt.Sprint(x.status)] = refused
		}
		responses["200"].(node)["headers"] = limits()
		responses["200"].(node)["description"] = "It was done."
	})
}

// dropUnknown removes what huma writes beyond OpenAPI.
func dropUnknown(part any) {
	switch x := part.(type) {
	case node:
		delete(x, "patternDescription")
		for _, value := range x {
			dropUnknown(value)
		}
	case []any:
		for _, value := range x {
			dropUnknown(value)
		}
	}
}

// downgrade converts a document to OpenAPI 3.0.3: null is a flag there, a reference has no siblings, and a licence has a URL. Events are
// plain objects with their type, because many generators cannot distinguish the members of a union.
func downgrade(d node) {
	d["openapi"] = "3.0.3"
	d["info"].(node)["license"] = node{"name": "Apache 2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
	schemas := d["components"].(node)["schemas"].(node)
	if event, ok := schemas[events.Name].(node); ok {
		plain := schemas[otherEventName].(node)
		plain["description"] = event["description"].(string) + " What data has is in the schema of the event's type."
		plain["properties"].(node)["type"] = node{"type": "string", "x-extensible-enum": events.Kinds()}
		schemas[events.Name] = plain
		delete(schemas, otherEventName)
	}
	downgradeSchemas(d)
}

func downgradeSchemas(part any) {
	switch x := part.(type) {
	case node:
		if kinds, ok := x["type"].([]any); ok {
			x["nullable"] = slices.Contains(kinds, any("null"))
			x["type"] = slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool { return kind == "null" })[0]
		}
		if ref, ok := x["$ref"].(string); ok && len(x) > 1 && strings.HasPrefix(ref, schemasPath) {
			delete(x, "$ref")
			x["allOf"] = []any{node{"$ref": ref}}
		}
		for _, value := range x {
			downgradeSchemas(value)
		}
	case []any:
		for _, value := range x {
			downgradeSchemas(value)
		}
	}
}
