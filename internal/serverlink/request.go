package serverlink

import (
	"bytes"
	"fmt"
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

// request has the members of all requests that the service uses: each action has few, and SDKs of different ages
// and languages send unset ones or leave them out.
type request struct {
	action, id string
	bytes      int // of the message; its reader sets it

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

	// fault says what is wrong with a member, for an answer with status 400; "" when nothing is.
	fault string
}

// actions has the one string for each known action, so that reading a message allocates none.
var actions = func() map[string]string {
	m := map[string]string{}
	for _, a := range []string{actActivateServerProcess, actHeartbeatServerProcess, actActivateGameSession,
		actUpdatePlayerSessionCreationPolicy, actAcceptPlayerSession, actRemovePlayerSession, actDescribePlayerSessions,
		actStartMatchBackfill, actStopMatchBackfill, actGetComputeCertificate, actGetFleetRoleCredentials, actTerminateServerProcess} {
		m[a] = a
	}
	return m
}()

// readRequest reads a message. It returns false for a message that cannot be answered, no JSON object or no RequestId; a request
// whose members have wrong types comes back with its fault. The message's bytes are not kept.
func readRequest(message []byte) (request, bool) {
	var r request
	if !members(message, r.set) || r.id == "" {
		return request{}, false
	}
	if r.fault == "" && len(r.id) > requestIDMax && utf8.RuneCountInString(r.id) > requestIDMax {
		r.fault = fmt.Sprintf("RequestId has more than %d characters", requestIDMax)
	}
	return r, true
}

// set takes one member. Names are matched in any case; null, the empty string and absence are the same; of repeated
// members the last counts. docs/spec/server-sdk.md#request.
func (r *request) set(name, value []byte) {
	is := func(want string) bool {
		return len(name) == len(want) && (string(name) == want || bytes.EqualFold(name, []byte(want)))
	}
	switch len(name) { // lengths keep this from comparing every name with every other
	case 4:
		if is("Port") {
			r.takeInt("Port", value, &r.port)
		}
	case 5:
		if is("Limit") {
			r.takeInt("Limit", value, &r.limit)
		}
	case 6:
		if is("Action") {
			r.takeAction(value)
		}
	case 7:
		if is("Players") && value[0] != 'n' {
			r.players = bytes.Clone(value) // few requests have it, and none is on the way to a game's start
		}
	case 8:
		switch {
		case is("LogPaths"):
			r.takeStrings("LogPaths", value, &r.logPaths)
		case is("PlayerId"):
			r.takeString("PlayerId", value, &r.player)
		case is("TicketId"):
			r.takeString("TicketId", value, &r.ticket)
		}
	case 9:
		switch {
		case is("RequestId"):
			r.takeString("RequestId", value, &r.id)
		case is("NextToken"):
			r.takeString("NextToken", value, &r.nextToken)
		}
	case 10:
		if is("SdkVersion") {
			r.takeString("SdkVersion", value, &r.sdkVersion)
		}
	case 11:
		switch {
		case is("SdkLanguage"):
			r.takeString("SdkLanguage", value, &r.sdkLanguage)
		case is("SdkToolName"):
			r.takeString("SdkToolName", value, &r.toolName)
		}
	case 12:
		if is("HealthStatus") {
			r.takeBool("HealthStatus", value, &r.healthy)
		}
	case 13:
		if is("GameSessionId") {
			r.takeString("GameSessionId", value, &r.gameSession)
		}
	case 14:
		switch {
		case is("SdkToolVersion"):
			r.takeString("SdkToolVersion", value, &r.toolVersion)
		case is("GameSessionArn"):
			r.takeString("GameSessionArn", value, &r.game)
		}
	case 15:
		if is("PlayerSessionId") {
			r.takeString("PlayerSessionId", value, &r.playerSession)
		}
	case 19:
		if is("PlayerSessionPolicy") {
			r.takeString("PlayerSessionPolicy", value, &r.policy)
		}
	case 25:
		if is("PlayerSessionStatusFilter") {
			r.takeString("PlayerSessionStatusFilter", value, &r.status)
		}
	case 27:
		if is("MatchmakingConfigurationArn") {
			r.takeString("MatchmakingConfigurationArn", value, &r.configuration)
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

// wrongType keeps the first fault. The value is cut short: it may be most of a megabyte.
func (r *request) wrongType(name string, value []byte, want string) {
	if r.fault == "" {
		r.fault = fmt.Sprintf("%s is %.60s, must be %s", name, value, want)
	}
}
