package matchmaking

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

// DataMax is the maximum size of a game session's match data in bytes. The API model counts characters; the difference matters only near
// the limit.
const DataMax = 390_000

// Used returns a player with only the attributes that a rule set declares: the player's own values or the defaults. Undeclared attributes
// do not reach the game server.
func Used(rules *ruleset.RuleSet, p Player) Player {
	p.Latencies = nil
	if rules == nil {
		return p // this release rejects a rule set that an earlier release accepted
	}
	values, err := rules.Player(p.Attributes)
	if err != nil {
		return p
	}
	p.Attributes = make([]ruleset.NamedValue, 0, len(values))
	for i, v := range values {
		if v.Kind != ruleset.None {
			p.Attributes = append(p.Attributes, ruleset.NamedValue{Name: rules.Attributes[i].Name, Value: v})
		}
	}
	return p
}

// ARN returns the ARN of the configuration.
func (c *Configuration) ARN() string {
	return "arn:aws:gamelift:" + c.Region + ":" + c.Account + ":matchmakingconfiguration/" + c.Name
}

// Data returns the match data of a game session as game servers read it: JSON, with the teams in the rule set's order.
func (h *Hosted) Data(teams []ruleset.Team, players []Player, autoTicket string) string {
	var b strings.Builder
	b.WriteString(`{"matchId":`)
	quote(&b, h.Match)
	b.WriteString(`,"matchmakingConfigurationArn":`)
	quote(&b, h.Of.ARN())
	b.WriteString(`,"teams":[`)
	for i, name := range TeamNames(teams, players) {
		if i > 0 {
			b.WriteByte(',')
		}
		writeTeam(&b, name, players)
	}
	b.WriteString(`],"autoBackfillMode":`)
	if h.Of.AutoBackfill {
		b.WriteString(`"AUTOMATIC"`)
	} else {
		b.WriteString("null")
	}
	b.WriteString(`,"autoBackfillTicketId":`)
	if autoTicket != "" {
		quote(&b, autoTicket)
	} else {
		b.WriteString("null")
	}
	b.WriteByte('}')
	return b.String()
}

// TeamNames returns all teams of a rule set, followed by those named only by players, because the rule set may have been replaced.
func TeamNames(teams []ruleset.Team, players []Player) []string {
	names := make([]string, 0, len(teams))
	known := make(map[string]bool, len(teams))
	for _, t := range teams {
		names = append(names, t.Name)
		known[t.Name] = true
	}
	for _, p := range players {
		if !known[p.Team] {
			names = append(names, p.Team)
			known[p.Team] = true
		}
	}
	return names
}

func writeTeam(b *strings.Builder, name string, players []Player) {
	b.WriteString(`{"name":`)
	quote(b, name)
	b.WriteString(`,"players":[`)
	first := true
	for i := range players {
		if players[i].Team != name {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(`{"playerId":`)
		quote(b, players[i].ID)
		b.WriteString(`,"attributes":{`)
		for j, v := range players[i].Attributes {
			if j > 0 {
				b.WriteByte(',')
			}
			quote(b, v.Name)
			writeAttribute(b, &v.Value)
		}
		b.WriteString("}}")
	}
	b.WriteString("]}")
}

func writeAttribute(b *strings.Builder, v *ruleset.Value) {
	b.WriteString(`:{"attributeType":"`)
	switch v.Kind {
	case ruleset.String:
		b.WriteString(`STRING","valueAttribute":`)
		quote(b, v.Text)
	case ruleset.Number:
		b.WriteString(`DOUBLE","valueAttribute":`)
		double(b, v.Number)
	case ruleset.List:
		b.WriteString(`STRING_LIST","valueAttribute":[`)
		for i, s := range v.List {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, s)
		}
		b.WriteByte(']')
	case ruleset.Map:
		b.WriteString(`STRING_DOUBLE_MAP","valueAttribute":{`)
		for i, e := range v.Map {
			if i > 0 {
				b.WriteByte(',')
			}
			quote(b, e.Key)
			b.WriteByte(':')
			double(b, e.Number)
		}
		b.WriteByte('}')
	default:
		b.WriteString(`NONE","valueAttribute":null`)
	}
	b.WriteByte('}')
}

// double writes a number with a fraction, such as 10.0, because servers use that to distinguish types.
func double(b *strings.Builder, x float64) {
	form := byte('f')
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	s := strconv.FormatFloat(x, form, -1, 64)
	b.WriteString(s)
	if form == 'f' && !strings.Contains(s, ".") {
		b.WriteString(".0")
	}
}

const hexDigits = "0123456789abcdef"

// quote writes a JSON string. Bytes that are not UTF-8 become the replacement character.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	begin := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b.WriteString(s[begin:i])
				b.WriteString("\uFFFD")
				begin = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b.WriteString(s[begin:i])
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteString(`\u00`)
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
		i++
		begin = i
	}
	b.WriteString(s[begin:])
	b.WriteByte('"')
}
