package attention

import (
	"fmt"

	"github.com/musterhq/muster/internal/plural"
)

// exports are the receivers of the audit log that have got nothing for long.
func (f *Finder) exports() (all []Item) {
	if f.config.Exports == nil {
		return nil
	}
	for _, late := range f.config.Exports() {
		what := fmt.Sprintf("The audit log has not reached %s for %s: %s.", late.Receiver, plural.Duration(late.For), plural.Of(late.Waiting, "entry waits", "entries wait"))
		if late.Why != "" {
			what += " The last attempt failed: " + late.Why + "."
		}
		all = append(all, Item{What: what, Next: "Check that the receiver runs, accepts connections from the leader, and reads them to the end. No entry is lost: the service sends them once it answers."})
	}
	return all
}
