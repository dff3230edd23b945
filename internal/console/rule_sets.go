package console

import (
	"net/http"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/matchmaking"
)

// ruleSetRow is a rule set with the configurations that use it.
type ruleSetRow struct {
	matchmaking.RuleSet
	Users []string
}

// ruleSetsPage is how many rule sets a page shows.
const ruleSetsPage = 200

type ruleSetList struct {
	Sets []ruleSetRow
	Next string // place after which the next page starts; empty: this is the last one
}

func (d *Door) ruleSets(r *http.Request) (*content, error) {
	var x ruleSetList
	err := d.engine.Read(r.Context(), func(v *cell.View) error {
		all := v.RuleSets(r.URL.Query().Get("after"), ruleSetsPage+1)
		if len(all) > ruleSetsPage {
			all = all[:ruleSetsPage]
			x.Next = all[ruleSetsPage-1].Name
		}
		users := map[string][]string{}
		for _, c := range v.Configurations("", "", catalogMost) {
			users[c.RuleSet] = append(users[c.RuleSet], c.Name)
		}
		for _, set := range all {
			x.Sets = append(x.Sets, ruleSetRow{set, users[set.Name]})
		}
		return nil
	})
	return &content{Title: "Rule sets", Section: "matchmaking", page: "rule-sets", Data: &x, Command: "aws gamelift describe-matchmaking-rule-sets"}, err
}
