// Package quota limits what one holder may have: the number of records of each kind, and a share of their memory. A caller that creates without end
// is thus refused while others still find room.
//
// A holder is an access key with all temporary credentials issued to it, a person or a machine that signed in elsewhere, or all players of player
// flow together. Records contain the number of their holder, so the counts (Held) are a function of the records, and a replay, a snapshot and another
// node have the same counts. Records without a holder count only for the installation as a whole: those that the service creates on its own, and
// those from before holders existed.
package quota

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/musterhq/muster/internal/domain"
)

// Level is the level from which on records have holders; earlier releases do not count them.
const Level = 2

// Holder identifies the holder of a record by a number derived from its name. 0: no holder.
type Holder uint64

// Players is the holder for all players of player flow, who have no access key. Each player has at most one party and one search.
const Players Holder = 1

// HolderNamed returns the holder with a name: the first eight bytes of its SHA-256, as for domain.Maker.
func HolderNamed(name string) Holder {
	sum := sha256.Sum256([]byte(name))
	return Holder(max(binary.BigEndian.Uint64(sum[:8]), uint64(Players)+1))
}

// HolderOf returns the holder of a record that has a holder or, from before holders existed, only a maker.
func HolderOf(h Holder, m domain.Maker) Holder {
	if h == 0 {
		return Holder(m)
	}
	return h
}

// Stored returns the holder to store in a maker's record: none if the maker implies it.
func Stored(h Holder, m domain.Maker) Holder {
	if h == Holder(m) {
		return 0
	}
	return h
}

// Taker is a command that creates records with a holder. The engine sets the holder from the caller's context.
type Taker interface{ Hold(Holder) }

// Taking is embedded in commands whose records have no field for a holder.
type Taking struct{ Holder Holder }

// Hold implements Taker.
func (t *Taking) Hold(h Holder) { t.Holder = h }

// Kind is a kind of record that is counted by holder.
type Kind uint8

// The kinds.
const (
	GameSessions   Kind = iota // that have not ended
	PlayerSessions             // this and the following two with those that ended a moment ago, until the archive has them
	Placements
	Tickets
	Fleets
	Locations
	Computes
	Hosts // that have joined and were not revoked: for the one who issued their join token
	Builds
	Aliases
	Queues
	RuleSets
	Configurations
	GameServerGroups
	GameServers
	Subscriptions // to events of player flow

	kinds
)

var names = [kinds]string{
	GameSessions: "game_sessions", PlayerSessions: "player_sessions", Placements: "placements", Tickets: "tickets", Fleets: "fleets", Locations: "locations",
	Computes: "computes", Hosts: "hosts", Builds: "builds", Aliases: "aliases", Queues: "queues", RuleSets: "rule_sets", Configurations: "matchmaking_configurations",
	GameServerGroups: "game_server_groups", GameServers: "game_servers", Subscriptions: "event_subscriptions",
}

// String returns the name of the quota, in settings, metrics and refusals.
func (k Kind) String() string { return names[k] }

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for k := range all {
		all[k] = Kind(k)
	}
	return all
}

// KindNamed returns the kind with a name.
func KindNamed(name string) (Kind, error) {
	for k, known := range names {
		if known == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("quota %.40q: want one of %s", name, strings.Join(names[:], ", "))
}

// reason returns the reason for a refusal. Records that end by themselves soon make room, so their callers are told to try again.
func (k Kind) reason() domain.Reason {
	switch k {
	case PlayerSessions, Placements, Tickets:
		return domain.Overloaded
	case Builds: // the API declares no limit here
		return domain.Invalid
	}
	return domain.LimitExceeded
}

// Numbers is the quota for each kind of record; 0: the default.
type Numbers [kinds]int

// defaults are far above the needs of one key of a game with a million players. For the other kinds, the installation has a limit, of which
// one holder may have most: see Most.
var defaults = Numbers{
	GameSessions: 1_000_000, PlayerSessions: 5_000_000, Placements: 1_000_000, Tickets: 2_000_000, Computes: 500_000, GameServers: 500_000, Subscriptions: 32,
}

// Default returns the default quota for a kind; 0: most of the installation's limit.
func Default(k Kind) int { return defaults[k] }

// shareFrom is the installation limit from which on one holder may not have all of it. Operators set smaller limits deliberately.
const shareFrom = 1000

// Most returns the largest part of an installation limit that one holder may have: three quarters, so that others always find room, or all
// of a small limit.
func Most(limit int) int {
	if limit < shareFrom {
		return limit
	}
	return limit - limit/4
}

// Table has the quotas in force.
type Table struct {
	Each Numbers            // for every holder
	Of   map[Holder]Numbers // for single holders, with precedence; 0: as Each
}

// most returns the quota of a holder for a kind; limit is the installation's, 0 for none.
func (t *Table) most(k Kind, h Holder, limit int) int {
	if t != nil {
		if n := t.Of[h][k]; n != 0 {
			return n
		}
		if n := t.Each[k]; n != 0 {
			return n
		}
	}
	if n := defaults[k]; n != 0 {
		return n
	}
	return Most(limit)
}

// Quotas are the quotas of a cell, which all code reads from here. They can be replaced while the cell runs; existing records stay. The
// zero value and nil have the defaults.
type Quotas struct{ table atomic.Pointer[Table] }

// Set replaces the quotas.
func (q *Quotas) Set(t *Table) { q.table.Store(t) }

// Most returns how many records of a kind a holder may have; limit is the installation's, 0 for none.
func (q *Quotas) Most(k Kind, h Holder, limit int) int {
	if q == nil {
		return (*Table)(nil).most(k, h, limit)
	}
	return q.table.Load().most(k, h, limit)
}

// Check refuses more records of a kind for a holder than it may have. Records without a holder (0) are not limited.
func (q *Quotas) Check(k Kind, held *Held, h Holder, more, limit int) error {
	if h == 0 {
		return nil
	}
	has, most := held.Of(h).Count, q.Most(k, h, limit)
	if has+more <= most {
		return nil
	}
	refusal := domain.Refuse(k.reason(), "%s of this holder: %d; its quota %s is %d", strings.ReplaceAll(k.String(), "_", " "), has, k, most)
	refusal.Quota = k.String()
	return refusal
}
