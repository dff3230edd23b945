package sessionapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"maps"

	"github.com/musterhq/muster/internal/domain/session"
)

// The API's model bounds the members to which these fields are translated.
var (
	fleetForm    = regexp.MustCompile(`^([a-z]*fleet-[a-zA-Z0-9\-]+|arn:.*:[a-z]*fleet/[a-z]*fleet-[a-zA-Z0-9\-]+)$`)
	aliasForm    = regexp.MustCompile(`^(alias-\S+|arn:.*:alias/alias-\S+)$`)
	queueForm    = regexp.MustCompile(`^([a-zA-Z0-9-]+|arn:.*:gamesessionqueue/[a-zA-Z0-9-]+)$`)
	idForm       = regexp.MustCompile(`^[a-zA-Z0-9-]{1,48}$`)
	locationForm = regexp.MustCompile(`^[A-Za-z0-9\-]{1,64}$`)
	regionForm   = regexp.MustCompile(`^[A-Za-z0-9\-]{1,32}$`)
	clientForm   = regexp.MustCompile(`^[A-Za-z0-9._\-]{1,64}$`)
)

const (
	textMax       = 1024
	playerMax     = 1024
	playerDataMax = 2048
	dataMax       = 256 << 10
	propertiesMax = 16
	keyMax        = 32
	valueMax      = 96
)

// checks keeps the first problem of an input, in the order of its fields.
type checks struct{ first *Problem }

func (c *checks) add(p *Problem) {
	if c.first == nil {
		c.first = p
	}
}

// text checks a field that may be empty.
func (c *checks) text(field, value string, most int) {
	if n := utf8.RuneCountInString(value); n > most {
		c.add(invalid(field, value, fmt.Sprintf("at most %d characters, it has %d", most, n)))
	}
}

// required checks a field that must not be empty.
func (c *checks) required(field, value string, most int) {
	if value == "" {
		c.add(missing(field, "1 to "+fmt.Sprint(most)+" characters"))
	}
	c.text(field, value, most)
}

// form checks a field that is empty or has a certain form.
func (c *checks) form(field, value string, form *regexp.Regexp, expected string) {
	if value != "" && (len(value) > 512 || !form.MatchString(value)) {
		c.add(invalid(field, value, expected))
	}
}

const (
	fleetWanted = "a fleet id such as fleet-1234, or the fleet's ARN"
	aliasWanted = "an alias id such as alias-1234, or the alias's ARN"
	idWanted    = "1 to 48 letters, digits and dashes"
)

// fleet checks that exactly one of a fleet and an alias is named.
func (c *checks) fleet(fleetID, aliasID string) {
	switch {
	case fleetID == "" && aliasID == "":
		c.add(missing("fleetId", fleetWanted+"; or an aliasId"))
	case fleetID != "" && aliasID != "":
		c.add(invalid("aliasId", aliasID, "either fleetId or aliasId, not both"))
	}
	c.form("fleetId", fleetID, fleetForm, fleetWanted)
	c.form("aliasId", aliasID, aliasForm, aliasWanted)
}

// maxPlayer is required: without it the game session would have no seats.
func (c *checks) maxPlayer(n *int32) {
	switch {
	case n == nil:
		c.add(missing("maxPlayer", "a whole number of players"))
	case *n < 0:
		c.add(invalid("maxPlayer", *n, "0 or more"))
	}
}

// properties checks game properties and puts them in the order of their keys.
func (c *checks) properties(field string, properties map[string]string) (list []session.Property) {
	if n := len(properties); n > propertiesMax {
		c.add(invalid(field, fmt.Sprintf("%d properties", n), fmt.Sprintf("at most %d", propertiesMax)))
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		switch value := properties[key]; {
		case key == "" || utf8.RuneCountInString(key) > keyMax:
			c.add(invalid(field, key, fmt.Sprintf("keys of 1 to %d characters", keyMax)))
		case utf8.RuneCountInString(value) > valueMax:
			c.add(invalid(field+"."+key, value, fmt.Sprintf("values of at most %d characters", valueMax)))
		default:
			list = append(list, session.Property{Key: key, Value: value})
		}
	}
	return list
}

// lastPart returns the id in an ARN, or an id unchanged.
func lastPart(idOrARN string) string {
	if !strings.HasPrefix(idOrARN, "arn:") {
		return idOrARN
	}
	return idOrARN[strings.LastIndexByte(idOrARN, '/')+1:]
}
