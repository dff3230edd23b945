package ruleset

import "fmt"

// definition is an element of "teams": one team, or with a quantity several equal ones.
type definition struct {
	object
	name     string
	min, max int32
	quantity int32
	ok       bool  // its numbers are valid
	largest  int32 // the largest maxPlayers, over all levels
	teams    []int // its indexes in RuleSet.Teams
}

func (r *reader) readTeams(root object) {
	r.names.teams = map[string][]int{}
	if n, given := root.has("teams"); !given || n.kind == jsonArray && len(n.items) == 0 {
		root.fail("teams", "it is missing or empty, want at least one team")
		r.names.incomplete = true
	}
	root.list("teams", func(_ int, o object) {
		o.known("name", "minPlayers", "maxPlayers", "quantity")
		d := definition{object: o, quantity: 1}
		d.name, _ = o.text("name")
		d.readNumbers()
		r.definitions = append(r.definitions, d)
	})
	if len(r.definitions) == 0 {
		r.names.incomplete = true
	}
	r.nameTeams()
}

func (d *definition) readNumbers() {
	least, ok1 := d.required("minPlayers", 0)
	most, ok2 := d.required("maxPlayers", 1)
	quantity, given := d.whole("quantity", 1)
	if _, written := d.has("quantity"); !written {
		quantity, given = 1, true
	}
	if given {
		d.quantity = quantity
	}
	d.ok = ok1 && ok2 && given
	if d.ok && least > most {
		d.fail("minPlayers", "got %d, want at most the team's maxPlayers %d", least, most)
		d.ok = false
	}
	d.min, d.max, d.largest = least, most, most
}

// nameTeams unrolls the definitions. A match has at most 200 players, so it names no more teams than that.
func (r *reader) nameTeams() {
	definitions := make(map[string]bool)
	for i := range r.definitions {
		d := &r.definitions[i]
		if d.name == "" {
			r.names.incomplete = true
		} else if definitions[d.name] {
			d.fail("name", "two teams are called %s", quoted(d.name))
			continue
		}
		definitions[d.name] = true
		for k := int32(1); k <= d.quantity; k++ {
			if len(r.set.Teams) == largeMax {
				r.names.incomplete = true
				return
			}
			d.teams = append(d.teams, len(r.set.Teams))
			r.names.all = append(r.names.all, len(r.set.Teams))
			name := d.name
			if d.quantity > 1 {
				name = fmt.Sprintf("%s_%d", d.name, k)
			}
			r.set.Teams = append(r.set.Teams, Team{Name: name, Definition: d.name})
		}
		if d.name != "" {
			r.names.teams[d.name] = d.teams
		}
	}
	for i := range r.definitions {
		d := &r.definitions[i]
		if d.quantity == 1 || d.name == "" {
			continue
		}
		for _, team := range d.teams {
			name := r.set.Teams[team].Name
			if r.names.teams[name] != nil {
				d.fail("quantity", "it makes a team %s, and another team is called so", quoted(name))
				break
			}
			r.names.teams[name] = []int{team}
		}
	}
}

// decideSize adds up the largest sizes of the teams.
func (r *reader) decideSize(root object) {
	for i := range r.definitions {
		d := &r.definitions[i]
		// The sum cannot overflow: each term is at most 2^31 times 2^31, and is limited to far less.
		r.sum += min(int64(d.largest)*int64(d.quantity), 1<<40)
		r.set.PartyMax = max(r.set.PartyMax, d.largest)
	}
	if r.sum > largeMax {
		root.fail("teams", "the teams' maxPlayers, at their largest, sum to %d, want at most %d", r.sum, largeMax)
	}
	r.set.Large = r.large()
	r.set.PlayersMax = int32(min(r.sum, largeMax))
}
