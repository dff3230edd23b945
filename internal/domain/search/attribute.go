package search

import (
	"maps"
	"slices"
	"strings"
)

// Attribute is a property of a game session that a filter or an order uses.
type Attribute uint8

// None stands for a search without an order.
const (
	None Attribute = iota
	GameSessionID
	GameSessionName
	Property // a game property; its key is named beside it
	MaximumSessions
	CreationTimeMillis
	PlayerSessionCount
	HasAvailablePlayerSessions
)

const (
	propertyPrefix = "gameSessionProperties."
	keyMax         = 32 // characters; the API's limit for the key of a game property
)

var attributeNames = map[string]Attribute{
	"gameSessionId": GameSessionID, "gameSessionName": GameSessionName, "maximumSessions": MaximumSessions,
	"creationTimeMillis": CreationTimeMillis, "playerSessionCount": PlayerSessionCount,
	"hasAvailablePlayerSessions": HasAvailablePlayerSessions,
}

// Attributes returns the names of the attributes. The last one is a prefix, which the key of a game property continues.
func Attributes() []string {
	return append(slices.Sorted(maps.Keys(attributeNames)), propertyPrefix)
}

const wantAttribute = "gameSessionId, gameSessionName, gameSessionProperties.<key>, maximumSessions, creationTimeMillis, " +
	"playerSessionCount or hasAvailablePlayerSessions"

// kind is the type of an attribute's value, and of the values that it can be compared with.
type kind uint8

const (
	textKind kind = iota
	numberKind
	truthKind
)

func (a Attribute) kind() kind {
	switch a {
	case MaximumSessions, CreationTimeMillis, PlayerSessionCount:
		return numberKind
	case HasAvailablePlayerSessions:
		return truthKind
	default:
		return textKind
	}
}

// Numeric reports whether the attribute's values are numbers; truth counts as 0 and 1.
func (a Attribute) Numeric() bool { return a.kind() != textKind }

// operand is an attribute as it was written.
type operand struct {
	attribute Attribute
	key       string
	written   string
}

// readOperand parses a word as an attribute. If it cannot, problem describes what was expected.
func readOperand(word string) (o operand, problem string) {
	if key, ok := strings.CutPrefix(word, propertyPrefix); ok {
		switch {
		case key == "":
			return o, "the key of a game property after the period"
		case strings.Contains(key, "."):
			return o, "the key of a game property without a period: keys that hold one cannot be searched"
		case len(key) > keyMax:
			return o, "the key of a game property, which has at most 32 characters"
		}
		return operand{Property, key, word}, ""
	}
	if a, ok := attributeNames[word]; ok {
		return operand{a, "", word}, ""
	}
	for name := range attributeNames {
		if strings.EqualFold(name, word) {
			return o, name + " (names are case-sensitive)"
		}
	}
	return o, wantAttribute
}
