package flow

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestChanges adds changes of a few players and drops the oldest one of all, as the archive does, and compares with a list.
func TestChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := New()
	var refs []ChangeRef // oldest first
	var want []Change
	for no := range uint64(2000) {
		if len(refs) > 0 && random.IntN(20) < 9 {
			s.RemoveChange(refs[0])
			refs, want = refs[1:], want[1:]
		} else {
			x := Change{EndedNo: no, Player: strconv.Itoa(random.IntN(5))}
			refs, want = append(refs, s.AddChange(x)), append(want, x)
		}
		for player := range 6 {
			id := strconv.Itoa(player)
			var mine []uint64
			for _, x := range want {
				if x.Player == id {
					mine = append(mine, x.EndedNo)
				}
			}
			var got []uint64
			s.ChangesOf(id, func(x *Change) bool {
				got = append(got, x.EndedNo)
				return true
			})
			if !slices.Equal(got, mine) {
				t.Fatalf("step %d: changes of %s are %d, want %d", no, id, got, mine)
			}
			if last, ok := s.LastChange(id); ok != (len(mine) > 0) || ok && last.EndedNo != mine[len(mine)-1] {
				t.Fatalf("step %d: the last change of %s is %v, want that of %d", no, id, last, mine)
			}
		}
	}
}
