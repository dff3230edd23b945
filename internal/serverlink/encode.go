package serverlink

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain"
)

// Messages of the service are encoded by hand: member names in their exact case (C++ compares case-sensitively), every member
// of a message always present, strings never null, numbers never with a fraction. A mistake here causes no error but makes an
// SDK drop the message or crash. docs/spec/server-sdk.md#json.

// appendAnswer begins an answer; the caller adds members and the closing brace.
func appendAnswer(b []byte, r *request, status int) []byte {
	b = append(b, `{"Action":`...)
	b = appendText(b, r.action)
	b = append(b, `,"RequestId":`...)
	b = appendText(b, r.id)
	b = append(b, `,"StatusCode":`...)
	return strconv.AppendInt(b, int64(status), 10)
}

// appendOK appends the complete answer to a request without a result.
func appendOK(b []byte, r *request) []byte {
	return append(appendAnswer(b, r, 200), '}')
}

// appendFailure appends the complete answer to a failed request.
func appendFailure(b []byte, r *request, status int, message string) []byte {
	b = appendAnswer(b, r, status)
	b = append(b, `,"ErrorMessage":`...)
	b = appendText(b, message)
	return append(b, '}')
}

// playerSession is a player session as game servers see it. docs/spec/server-sdk.md#player-session.
type playerSession struct {
	player, id, gameSession, fleet, data string
	ipAddress, dnsName                   string
	port                                 int
	created, ended                       domain.Time // ended is 0 while the session is open
	status                               string
}

func appendPlayerSessions(b []byte, r *request, sessions []playerSession, next string) []byte {
	b = appendAnswer(b, r, 200)
	b = appendMember(b, `,"NextToken":`, next)
	b = append(b, `,"PlayerSessions":[`...)
	for i := range sessions {
		p := &sessions[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(b, `{"PlayerId":`, p.player)
		b = appendMember(b, `,"PlayerSessionId":`, p.id)
		b = appendMember(b, `,"GameSessionId":`, p.gameSession)
		b = appendMember(b, `,"FleetId":`, p.fleet)
		b = appendMember(b, `,"PlayerData":`, p.data)
		b = appendMember(b, `,"IpAddress":`, p.ipAddress)
		b = appendMember(b, `,"DnsName":`, p.dnsName)
		b = appendNumber(b, `,"Port":`, int64(p.port))
		b = appendNumber(b, `,"CreationTime":`, int64(p.created))
		if p.ended != 0 { // absent while open, as from the real service: Go and C# then read 0, C++ -1
			b = appendNumber(b, `,"TerminationTime":`, int64(p.ended))
		}
		b = appendMember(b, `,"Status":`, p.status)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func appendCertificate(b []byte, r *request, path, compute string) []byte {
	b = appendAnswer(b, r, 200)
	b = appendMember(b, `,"CertificatePath":`, path)
	b = appendMember(b, `,"ComputeName":`, compute)
	return append(b, '}')
}

// appendNoCredentials appends the answer that there are no role credentials. It has empty strings instead of absent members,
// because C# compares AccessKeyId with "". After this answer, the SDKs inform the game and never ask again.
// docs/spec/server-sdk.md#requests.
func appendNoCredentials(b []byte, r *request) []byte {
	return append(appendAnswer(b, r, 200),
		`,"AssumedRoleUserArn":"","AssumedRoleId":"","AccessKeyId":"","SecretAccessKey":"","SessionToken":"","Expiration":0}`...)
}

// Pushes have no RequestId, not even an empty one, because the SDKs would treat them as failed answers.
// docs/spec/server-sdk.md#push.

// createGameSession is the push that starts a game session. docs/spec/server-sdk.md#create-game-session.
type createGameSession struct {
	id, name           string
	playersMax         int
	ipAddress, dnsName string
	port               int
	data, matchmaker   string
	properties         []property
}

type property struct{ key, value string }

func appendCreateGameSession(b []byte, g *createGameSession) []byte {
	b = slices.Grow(b, 512+len(g.data)+len(g.matchmaker))
	b = append(b, `{"Action":"`+pushCreateGameSession+`"`...)
	b = appendMember(b, `,"GameSessionId":`, g.id)
	b = appendMember(b, `,"GameSessionName":`, g.name)
	b = appendNumber(b, `,"MaximumPlayerSessionCount":`, int64(g.playersMax))
	b = appendMember(b, `,"IpAddress":`, g.ipAddress)
	b = appendMember(b, `,"DnsName":`, g.dnsName)
	b = appendNumber(b, `,"Port":`, int64(g.port))
	b = appendMember(b, `,"GameSessionData":`, g.data)
	b = appendMember(b, `,"MatchmakerData":`, g.matchmaker)
	b = append(b, `,"GameProperties":{`...)
	for i, p := range g.properties {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, p.key)
		b = append(b, ':')
		b = appendText(b, p.value)
	}
	return append(b, "}}"...)
}

func appendTerminateProcess(b []byte, deadline domain.Time) []byte {
	return append(appendNumber(b, `{"Action":"`+pushTerminateProcess+`","TerminationTime":`, int64(deadline)), '}')
}

func appendRefreshConnection(b []byte, endpoint, token string) []byte {
	b = appendMember(b, `{"Action":"`+pushRefreshConnection+`","RefreshConnectionEndpoint":`, endpoint)
	return append(appendMember(b, `,"AuthToken":`, token), '}')
}

func appendMember(b []byte, lead, value string) []byte {
	return appendText(append(b, lead...), value)
}

func appendNumber(b []byte, lead string, value int64) []byte {
	return strconv.AppendInt(append(b, lead...), value, 10)
}

// appendText writes a JSON string. It replaces invalid UTF-8 with U+FFFD, because in C# invalid UTF-8 breaks the whole
// connection.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
