package attention

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/domain/quota"
	"github.com/musterhq/muster/internal/quotas"
)

// holdersLooked are the holders of each quota that are looked at: those with most.
const holdersLooked = 3

// holders are callers that have almost as much as their quota allows. A quota of a few records is left out: there one more is much.
func holders(v *cell.View, desk *quotas.Desk) (all []Item) {
	if desk == nil {
		return nil
	}
	name := desk.Namer(v.AccessKeys)
	for _, x := range v.Holdings(holdersLooked) {
		for _, by := range x.Highest {
			most := v.MostOf(&x, by.Holder)
			if by.Count < most && (most < 10 || by.Count < most-most/10) {
				continue
			}
			all = append(all, holder(x.Kind, name(by.Holder), by.Count, most))
		}
	}
	return all
}

func holder(k quota.Kind, name string, count, most int) Item {
	what := strings.ReplaceAll(k.String(), "_", " ")
	state := "then more are refused"
	if count >= most {
		state = "more are refused"
	}
	item := Item{
		What: fmt.Sprintf("Access key %s has %d %s; its quota is %d, and %s.", name, count, what, most, state),
		Next: fmt.Sprintf("Look for a program with this key that keeps creating %s, and revoke the key if it is not yours. If they are intended, raise the quota: --quotas %q.", what, fmt.Sprintf("%s/%s=%d", name, k, 2*most)),
		Kind: "access key", ID: name,
	}
	if name == quotas.PlayersName {
		item.What = fmt.Sprintf("Players have %d %s; their quota is %d, and %s.", count, what, most, state)
		item.Next = fmt.Sprintf("If these are your players, raise the quota: --quotas %q.", fmt.Sprintf("%s/%s=%d", name, k, 2*most))
		item.Kind, item.ID = "", ""
	}
	return item
}
