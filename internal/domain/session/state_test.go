package session

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/domain"
)

// known is what a State must find, kept in the simplest way.
type known struct {
	games   map[ID]GameRef
	old     []GameRef // whose ids others have
	players map[domain.PlayerSessionID]PlayerRef
	named   map[string][]PlayerRef
}

// compare looks for every existing record, and for some missing ones.
func (k *known) compare(t *testing.T, s *State) {
	t.Helper()
	for id, want := range k.games {
		if got, ok := s.Game(id); !ok || got != want {
			t.Fatalf("game session %s: found %d, %t, want %d", id, got, ok, want)
		}
	}
	for id, want := range k.players {
		if got, ok := s.PlayerByID(id); !ok || got != want {
			t.Fatalf("player session %s: found %d, %t, want %d", id, got, ok, want)
		}
	}
	for player, want := range k.named {
		var got []PlayerRef
		s.PlayersNamed(player, func(r PlayerRef, p *PlayerSession) bool {
			if p.Player != player {
				t.Fatalf("a player session of %q is found for %q", p.Player, player)
			}
			got = append(got, r)
			return true
		})
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Fatalf("player sessions of %s: found %v, want %v", player, got, want)
		}
	}
	named := 0
	for _, all := range k.named {
		named += min(1, len(all))
	}
	if games, players, names := s.byID.Len(), s.players.Len(), s.byPlayer.Len(); games != len(k.games) || players != len(k.players) || names != named {
		t.Fatalf("the indexes have %d game sessions, %d player sessions and %d players, want %d, %d and %d", games, players, names, len(k.games), len(k.players), named)
	}
	if _, ok := s.Game("fleet-1/here/none"); ok {
		t.Fatal("a game session is found that there is not")
	}
	if _, ok := s.PlayerByID(domain.PlayerSessionID{1}); ok {
		t.Fatal("a player session is found that there is not")
	}
}

// pick chooses a key, the same one for the same chance.
func pick[K comparable, V any](chance *rand.Rand, m map[K]V, compare func(a, b K) int) (key K, ok bool) {
	if len(m) == 0 {
		return key, false
	}
	keys := slices.SortedFunc(maps.Keys(m), compare)
	return keys[chance.IntN(len(keys))], true
}

// Exactly the existing records are found by their keys, whatever was added and removed in between: placements that take the id of a failed attempt, players with
// several player sessions, which are dropped in any order, and snapshots taken meanwhile. Once all are dropped, nothing remains of their fleets.
func TestRecordsAreFound(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		s := New()
		k := known{map[ID]GameRef{}, nil, map[domain.PlayerSessionID]PlayerRef{}, map[string][]PlayerRef{}}
		var now domain.Time
		for step := range 2000 {
			now++
			switch chance.IntN(10) {
			case 0:
				id := MakeID("fleet-1", "here", fmt.Sprint(chance.IntN(20)))
				old, taken := k.games[id]
				if taken && s.Games.Get(old).Players > 0 {
					continue
				}
				if taken {
					s.EndGame(old, now, NoReason, uint64(step))
					k.old = append(k.old, old)
				}
				k.games[id] = s.AddGame(GameSession{ID: id, FleetID: "fleet-1", Location: "here", Status: Active, PlayersMax: 200, Created: now})
			case 1:
				if id, ok := pick(chance, k.games, cmp.Compare[ID]); ok && s.Games.Get(k.games[id]).Players == 0 {
					s.EndGame(k.games[id], now, NoReason, uint64(step))
					s.DropGame(k.games[id])
					delete(k.games, id)
				}
			case 2:
				if len(k.old) > 0 {
					s.DropGame(k.old[0])
					k.old = k.old[1:]
				}
			case 3, 4, 5, 6:
				if game, ok := pick(chance, k.games, cmp.Compare[ID]); ok {
					id := domain.PlayerSessionID{2, byte(step), byte(step >> 8)}
					player := fmt.Sprint("player-", chance.IntN(40))
					r := s.Reserve(PlayerSession{ID: id, Player: player, Game: k.games[game], Status: Reserved, Created: now})
					k.players[id] = r
					k.named[player] = append(k.named[player], r)
				}
			case 7, 8:
				if id, ok := pick(chance, k.players, func(a, b domain.PlayerSessionID) int { return bytes.Compare(a[:], b[:]) }); ok {
					r := k.players[id]
					player := s.Players.Get(r).Player
					s.EndPlayer(r, now, Completed, uint64(step))
					s.DropPlayer(r)
					delete(k.players, id)
					k.named[player] = slices.DeleteFunc(k.named[player], func(x PlayerRef) bool { return x == r })
				}
			default:
				s.Players.Freeze()
				s.Games.Freeze()
			}
			if step%50 == 0 {
				k.compare(t, s)
			}
		}
		k.compare(t, s)
		if len(k.players) == 0 || len(k.games) == 0 {
			t.Fatalf("seed %d ends with %d player sessions in %d game sessions, which compares nothing", seed, len(k.players), len(k.games))
		}
		for _, r := range k.players {
			s.EndPlayer(r, now, Completed, 1)
			s.DropPlayer(r)
		}
		for _, r := range k.games {
			s.EndGame(r, now, NoReason, 1)
			k.old = append(k.old, r)
		}
		for _, r := range k.old {
			s.DropGame(r)
		}
		if len(s.counts) > 0 || len(s.byFleet) > 0 || s.all != (Counts{}) {
			t.Fatalf("seed %d: once all game sessions are gone, %d locations have counts, %d fleets have game sessions, and the counts of all are %+v", seed, len(s.counts), len(s.byFleet), s.all)
		}
	}
}
