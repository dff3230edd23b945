package searchindex

import (
	"fmt"
	"testing"
)

// TestTextsInOrderRarelyMoveLabels: new texts that come in their order, or against it, between two others. Each redistribution of labels reads
// all texts, and restarts the searches that are sorted by them.
func TestTextsInOrderRarelyMoveLabels(t *testing.T) {
	const texts = 20_000
	for name, number := range map[string]func(int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return texts - i },
	} {
		d := newDictionary()
		d.use("a")
		d.use("z")
		for i := range texts {
			d.use(fmt.Sprintf("m%06d", number(i)))
		}
		if d.relabelled > 3 {
			t.Errorf("%s: labels were redistributed %d times, want hardly ever", name, d.relabelled)
		}
		below := uint64(0)
		d.order.Scan(func(x ordered) bool {
			if d.labels[x.code] <= below {
				t.Fatalf("%s: %s has the label %d after %d", name, x.text, d.labels[x.code], below)
			}
			below = d.labels[x.code]
			return true
		})
		if below >= labelEnd {
			t.Errorf("%s: the last label is %d", name, below)
		}
	}
}
