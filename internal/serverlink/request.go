package serverlink

import (
	"bytes"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/musterhq/muster/internal/jsonbody"
)

// Actions of requests: docs/spec/server-sdk.md#requests.
const (
	actActivateServerProcess             = "ActivateServerProcess"
	actHeartbeatServerProcess            = "HeartbeatServerProcess"
	actActivateGameSession               = "ActivateGameSession"
	actUpdatePlayerSessionCreationPolicy = "UpdatePlayerSessionCreationPolicy"
	actAcceptPlayerSession               = "AcceptPlayerSession"
	actRemovePlayerSession               = "RemovePlayerSession"
	actDescribePlayerSessions            = "DescribePlayerSessions"
	actStartMatchBackfill                = "StartMatchBackfill"
	actStopMatchBackfill                 = "StopMatchBackfill"
	actGetComputeCertificate             = "GetComputeCertificate"
	actGetFleetRoleCredentials           = "GetFleetRoleCredentials"
	actTerminateServerProcess            = "TerminateServerProcess"
)

// Actions of pushes: docs/spec/server-sdk.md#pushes.
const (
	pushCreateGameSession = "CreateGameSession"
	pushUpdateGameSession = "UpdateGameSession"
	pushTerminateProcess  = "TerminateProcess"
	pushRefreshConnection = "RefreshConnection"
)

// requestIDMax is the longest RequestId, in characters. The SDKs use 32 to 36. docs/spec/server-sdk.md#request.
const requestIDMax = 128

// request has the members of all requests that the service uses. Each action uses few of them, and SDKs of different ages and languages send
// unset ones or omit them.
type request struct {
	action, id string
	bytes      int // of the message

	sdkVersion, sdkLanguage, toolName, toolVersion string
	port                                           int
	logPaths                                       []string

	healthy bool

	gameSession, playerSession, player string
	policy                             string // UpdatePlayerSessionCreationPolicy
	status                             string // filter of DescribePlayerSessions
	nextToken                          string
	limit                              int

	game, configuration, ticket string // of the backfill requests
	players                     []byte // a list, as it was sent

	// fault describes what is wrong with a member, for an answer with status 400; "" if nothing is.
	fault string
}

// actions maps each known action to a shared string, so that reading a message does not allocate it.
var actions = func() map[string]string {
	m := map[string]string{}
	for _, a := range []string{actActivateServerProcess, actHeartbeatServerProcess, actActivateGameSession,
		actUpdatePlayerSessionCreationPolicy, actAcceptPlayerSession, actRemovePlayerSession, actDescribePlayerSessions,
		actStartMatchBackfill, actStopMatchBackfill, actGetComputeCertificate, actGetFleetRoleCredentials, actTerminateServerProcess} {
		m[a] = a
	}
	return m
}()

// requests pools empty requests.
var requests = sync.Pool{New: func() any { return new(request) }}

// readRequest parses a message. It returns false for a message that cannot be answered because it is not a JSON object or has no RequestId. A
// request whose members have wrong types is returned with its fault. It does not keep the message's bytes. Call free after the request is
// answered.
func readRequest(message []byte) (*request, bool) {
	r := requests.Get().(*request)
	if !members(message, r.set) || r.id == "" {
		r.free()
		return nil, false
	}
	if r.fault == "" && len(r.id) > requestIDMax && utf8.RuneCountInString(r.id) > requestIDMax {
		r.fault = fmt.Sprintf("RequestId has more than %d characters", requestIDMax)
	}
	r.bytes = len(message)
	return r, true
}

func (r *request) free() {
	*r = request{}
	requests.Put(r)
}

// requestMembers maps the names of members to the fields for their values.
var requestMembers = []struct {
	name string
	take func(r *request, name string, value []byte)
}{
	{"Action", func(r *request, _ string, value []byte) { r.takeAction(value) }},
	{"RequestId", func(r *request, name string, value []byte) { r.takeString(name, value, &r.id) }},
	{"GameSessionId", func(r *request, name string, value []byte) { r.takeString(name, value, &r.gameSession) }},
	{"GameSessionArn", func(r *request, name string, value []byte) { r.takeString(name, value, &r.game) }},
	{"PlayerSessionId", func(r *request, name string, value []byte) { r.takeString(name, value, &r.playerSession) }},
	{"PlayerSessionPolicy", func(r *request, name string, value []byte) { r.takeString(name, value, &r.policy) }},
	{"PlayerSessionStatusFilter", func(r *request, name string, value []byte) { r.takeString(name, value, &r.status) }},
	{"PlayerId", func(r *request, name string, value []byte) { r.takeString(name, value, &r.player) }},
	{"TicketId", func(r *request, name string, value []byte) { r.takeString(name, value, &r.ticket) }},
	{"MatchmakingConfigurationArn", func(r *request, name string, value []byte) { r.takeString(name, value, &r.configuration) }},
	{"NextToken", func(r *request, name string, value []byte) { r.takeString(name, value, &r.nextToken) }},
	{"SdkVersion", func(r *request, name string, value []byte) { r.takeString(name, value, &r.sdkVersion) }},
	{"SdkLanguage", func(r *request, name string, value []byte) { r.takeString(name, value, &r.sdkLanguage) }},
	{"SdkToolName", func(r *request, name string, value []byte) { r.takeString(name, value, &r.toolName) }},
	{"SdkToolVersion", func(r *request, name string, value []byte) { r.takeString(name, value, &r.toolVersion) }},
	{"HealthStatus", func(r *request, name string, value []byte) { r.takeBool(name, value, &r.healthy) }},
	{"Port", func(r *request, name string, value []byte) { r.takeInt(name, value, &r.port) }},
	{"Limit", func(r *request, name string, value []byte) { r.takeInt(name, value, &r.limit) }},
	{"LogPaths", func(r *request, name string, value []byte) { r.takeStrings(name, value, &r.logPaths) }},
	{"Players", func(r *request, _ string, value []byte) {
		if value[0] != 'n' {
			r.players = bytes.Clone(value) // only a few requests have it, and none that delays a game's start
		}
	}},
}

// set stores one member. Names are matched case-insensitively; null, the empty string and absence are equivalent; of repeated members the last
// counts. docs/spec/server-sdk.md#request.
func (r *request) set(name, value []byte) {
	for i := range requestMembers {
		known := &requestMembers[i]
		if len(name) == len(known.name) && (string(name) == known.name || bytes.EqualFold(name, []byte(known.name))) {
			known.take(r, known.name, value)
			return
		}
	}
}

func (r *request) takeAction(value []byte) {
	if len(value) > 2 && value[0] == '"' {
		if known, ok := actions[string(value[1:len(value)-1])]; ok {
			r.action = known
			return
		}
	}
	r.takeString("Action", value, &r.action)
}

func (r *request) takeString(name string, value []byte, to *string) {
	switch {
	case value[0] == '"':
		*to = unquote(value)
	case value[0] == 'n':
		*to = ""
	default:
		r.wrongType(name, value, "a string")
	}
}

func (r *request) takeInt(name string, value []byte, to *int) {
	if value[0] == 'n' {
		*to = 0
		return
	}
	n, ok := wholeNumber(value)
	if !ok {
		r.wrongType(name, value, "a whole number")
		return
	}
	*to = n
}

func (r *request) takeBool(name string, value []byte, to *bool) {
	switch value[0] {
	case 't':
		*to = true
	case 'f', 'n':
		*to = false
	default:
		r.wrongType(name, value, "true or false")
	}
}

func (r *request) takeStrings(name string, value []byte, to *[]string) {
	*to = nil
	if value[0] == 'n' {
		return
	}
	var list []jsontext.Value
	if json.Unmarshal(value, &list, jsonbody.Lenient...) != nil {
		r.wrongType(name, value, "a list of strings")
	}
	for _, element := range list {
		var one string
		r.takeString(name, element, &one)
		*to = append(*to, one)
	}
}

// wrongType keeps the first fault. It truncates the value, which may have most of a megabyte.
func (r *request) wrongType(name string, value []byte, want string) {
	if r.fault == "" {
		r.fault = fmt.Sprintf("%s is %.60s, must be %s", name, value, want)
	}
}
