package playerhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	strictjson "github.com/go-json-experiment/json"

	"github.com/musterhq/muster/internal/domain/excerpt"
)

// readAnswer parses an answer. It ignores unknown fields, so that a receiver can be newer than the service. It refuses a field that occurs twice,
// also in different case, because it cannot know which of two verdicts the studio meant.
func readAnswer(body []byte, to answer) error {
	if err := strictjson.Unmarshal(body, to, strictjson.MatchCaseInsensitiveNames(true)); err != nil {
		return fmt.Errorf("its answer: %w", err)
	}
	if err := to.check(); err != nil {
		return fmt.Errorf("its answer: %w", err)
	}
	return nil
}

// Verdict is a yes or no.
type Verdict struct {
	Allow   *bool  `json:"allow"`
	Message string `json:"message"` // with a no: for the player's client; what is longer than messageMax is cut
}

// messageMax bounds the studio's message to a player.
const messageMax = 512

func (v *Verdict) check() error {
	if v.Allow == nil {
		return errors.New("allow: missing, want true or false")
	}
	v.Message = excerpt.Begin(v.Message, messageMax) // its length does not turn a no into the yes of on_timeout
	return nil
}

func (v *Verdict) verdict() (bool, string) { return *v.Allow, v.Message }

// addition is an answer that only adds data.
type addition struct{}

func (addition) verdict() (bool, string) { return true, "" }

// EnterAnswer adds attributes to a search. They are the studio's own, and override those of clients.
type EnterAnswer struct {
	Verdict
	Attributes *Object                `json:"attributes"` // of all players in the search
	Players    map[string]EnterPlayer `json:"players"`
}

// EnterPlayer is what the studio adds to one player of a search.
type EnterPlayer struct {
	Attributes *Object `json:"attributes"`
}

func (a *EnterAnswer) check() error {
	errs := []error{a.Verdict.check(), a.Attributes.within("attributes", partyAttributesMax)}
	for id, p := range a.Players {
		errs = append(errs, p.Attributes.within(fmt.Sprintf("players[%.128q].attributes", id), playerAttributesMax))
	}
	return errors.Join(errs...)
}

// PlayerDataAnswer is the PlayerData of player sessions, by player. Players who are not in it get none.
type PlayerDataAnswer struct {
	addition
	Players map[string]string `json:"players"`
}

// playerDataMax is the API's limit of PlayerData.
const playerDataMax = 2048

func (a *PlayerDataAnswer) check() error {
	for id, data := range a.Players {
		if n := utf8.RuneCountInString(data); n > playerDataMax {
			return fmt.Errorf("players[%.128q]: %d characters, want at most %d", id, n, playerDataMax)
		}
	}
	return nil
}

// RegionsAnswer has the locations for a game, the best first.
type RegionsAnswer struct {
	addition
	Regions []string `json:"regions"`
}

const regionsMax = 32

func (a *RegionsAnswer) check() error {
	if len(a.Regions) > regionsMax {
		return fmt.Errorf("regions: %d, want at most %d", len(a.Regions), regionsMax)
	}
	for i, r := range a.Regions {
		if r == "" || len(r) > 64 || slices.Contains(a.Regions[:i], r) {
			return fmt.Errorf("regions[%d]: %.64q, want 1 to 64 bytes, and each region once", i, r)
		}
	}
	return nil
}

// DirectAnswer is about a game that a player creates or joins. Absent fields have the service's values.
type DirectAnswer struct {
	Verdict
	Team            string            `json:"team"`
	Queue           string            `json:"queue"` // of a new game: the game session queue that places it
	MaxPlayers      int32             `json:"max_players"`
	Reconnect       string            `json:"reconnect"`
	Name            string            `json:"name"`
	GameSessionData string            `json:"game_session_data"`
	GameProperties  map[string]string `json:"game_properties"`
	Attributes      *Object           `json:"attributes"` // instead of the player's
}

func (a *DirectAnswer) check() error {
	errs := []error{a.Verdict.check(), a.Attributes.within("attributes", partyAttributesMax)}
	if a.MaxPlayers < 0 || a.MaxPlayers > 1000 {
		errs = append(errs, fmt.Errorf("max_players: %d, want 1 to 1000", a.MaxPlayers))
	}
	if !slices.Contains([]string{"", "OFF", "OPTIONAL", "REQUIRED"}, a.Reconnect) {
		errs = append(errs, fmt.Errorf("reconnect: %.20q, want OFF, OPTIONAL or REQUIRED", a.Reconnect))
	}
	if len(a.Team) > 128 || len(a.Queue) > 256 || len(a.Name) > 1024 || len(a.GameSessionData) > 256<<10 {
		errs = append(errs, errors.New("team, queue, name, game_session_data: one is longer than 128, 256, 1,024 or 262,144 bytes"))
	}
	return errors.Join(errs...)
}

// UpdateAnswer is about attributes that a player changes.
type UpdateAnswer struct {
	Verdict
	Attributes *Object `json:"attributes"` // instead of the player's
}

func (a *UpdateAnswer) check() error {
	return errors.Join(a.Verdict.check(), a.Attributes.within("attributes", partyAttributesMax))
}

// PenaltyAnswer is the studio's decision on a penalty.
type PenaltyAnswer struct {
	addition
	Decision string `json:"decision"` // KEEP, CLEAR or SET
	Level    int32  `json:"level"`    // with SET
	LockMS   int64  `json:"lock_ms"`  // with SET: from now on; 0 is a warning
}

// lockMost bounds a lock: a year.
const lockMost = 366 * 24 * 3600 * 1000

func (a *PenaltyAnswer) check() error {
	if !slices.Contains([]string{"KEEP", "CLEAR", "SET"}, a.Decision) {
		return fmt.Errorf("decision: %.20q, want KEEP, CLEAR or SET", a.Decision)
	}
	if a.Level < 0 || a.Level > 1000 || a.LockMS < 0 || a.LockMS > lockMost {
		return fmt.Errorf("level %d, lock_ms %d: want up to 1000, and up to a year", a.Level, a.LockMS)
	}
	return nil
}

// Object is a JSON object as it was written.
type Object string

// The limits of attributes are those of the API.
const (
	partyAttributesMax  = 16 << 10
	playerAttributesMax = 4 << 10
)

// UnmarshalJSON accepts only an object, and removes the space between its parts. An empty one counts as none. Players get it as it
// is, in text frames too, for which encoding/json is not strict enough.
func (o *Object) UnmarshalJSON(text []byte) error {
	if len(text) == 0 || text[0] != '{' {
		return fmt.Errorf("%.20q, want an object", text)
	}
	if !utf8.Valid(text) {
		return errors.New("the object is not valid UTF-8")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return err
	}
	if *o = Object(compact.String()); *o == "{}" {
		*o = ""
	}
	return nil
}

// MarshalJSON writes the object as it is, and {} for none.
func (o Object) MarshalJSON() ([]byte, error) {
	if o == "" {
		return []byte("{}"), nil
	}
	return []byte(o), nil
}

func (o *Object) within(field string, most int) error {
	if o != nil && len(*o) > most {
		return fmt.Errorf("%s: %d bytes, want at most %d", field, len(*o), most)
	}
	return nil
}

// Text returns the object, or "" if there is none.
func (o *Object) Text() string {
	if o == nil {
		return ""
	}
	return string(*o)
}
