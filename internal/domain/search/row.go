package search

import "strings"

// Row has the fields of a game session that a search reads.
type Row struct {
	ID          string // "<fleet id>/<location>/<id string>"
	Name        string // empty: it has none
	Property    func(key string) (string, bool)
	Players     int32 // playerSessionCount
	SeatsKept   int32 // held for absent players
	PlayersMax  int32
	DenyPlayers bool
	Created     int64 // Unix milliseconds
}

// Joinable is the value of hasAvailablePlayerSessions. Clients use it to find game sessions that they can join, so it is false for one
// that accepts no players; see B061.
func Joinable(taken, most int32, deny bool) bool { return taken < most && !deny }

func (r Row) number(a Attribute) int64 {
	switch a {
	case MaximumSessions:
		return int64(r.PlayersMax)
	case PlayerSessionCount:
		return int64(r.Players)
	case CreationTimeMillis:
		return r.Created
	}
	if Joinable(r.Players+r.SeatsKept, r.PlayersMax, r.DenyPlayers) {
		return 1
	}
	return 0
}

func (r Row) text(a Attribute, key string) (string, bool) {
	if a == GameSessionName {
		return r.Name, r.Name != ""
	}
	return r.Property(key)
}

// Match reports whether the filter selects a game session.
func (f Filter) Match(r Row) bool { return f.Root == nil || f.Root.match(r) }

func (n *Node) match(r Row) bool {
	switch n.Op {
	case And:
		for _, k := range n.Kids {
			if !k.match(r) {
				return false
			}
		}
		return true
	case Or:
		for _, k := range n.Kids {
			if k.match(r) {
				return true
			}
		}
		return false
	case Not:
		return !n.Kids[0].match(r)
	case Between:
		v := r.number(n.Attribute)
		return n.Low <= v && v <= n.High
	case IsTruth:
		return r.number(n.Attribute) == 1 == n.Truth
	case IsGame:
		return n.Game.Names(r.ID)
	default:
		text, ok := r.text(n.Attribute, n.Key)
		return ok && (text == n.Text) == (n.Op == Is)
	}
}

// Game is a game session as a filter names it: by its ARN, by the part after "gamesession/", or by its id string alone. Omitted parts are
// empty.
type Game struct{ Fleet, Location, Name string }

func parseGame(text string) Game {
	if strings.HasPrefix(text, "arn:") {
		// Any partition, region and account are accepted, as in all ARNs of requests.
		_, tail, ok := strings.Cut(text, ":gamesession/")
		if !ok {
			return Game{}
		}
		text = tail
	}
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 1:
		return Game{Name: parts[0]}
	case 2: // the form of older ARNs
		return Game{Fleet: parts[0], Name: parts[1]}
	case 3:
		return Game{parts[0], parts[1], parts[2]}
	default:
		return Game{}
	}
}

// Names reports whether g is the game session with this id.
func (g Game) Names(id string) bool {
	parts := strings.SplitN(id, "/", 3)
	return len(parts) == 3 && g.Name == parts[2] && (g.Fleet == "" || g.Fleet == parts[0]) && (g.Location == "" || g.Location == parts[1])
}
