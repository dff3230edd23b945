package searchindex

import (
	"cmp"
	"strings"

	"github.com/musterhq/muster/internal/domain/search"
	"github.com/musterhq/muster/internal/domain/sorted"
)

// dictionary numbers texts, so that columns contain numbers. A number is reused when its text is no longer used. Labels have the order of
// the texts.
type dictionary struct {
	codes  map[string]uint32
	texts  []string // by number; 0 means "no text"
	labels []uint64 // by number, from 1 up to labelEnd
	uses   []int32
	free   []uint32
	order  sorted.Set[ordered]
	last   uint32 // the number of the latest new text

	// relabelled counts changes of all labels. Labels of different counts cannot be compared.
	relabelled int
}

type ordered struct {
	order string // search.OrderText of text
	text  string
	code  uint32
}

func (a ordered) before(b ordered) bool {
	return cmp.Or(strings.Compare(a.order, b.order), strings.Compare(a.text, b.text)) < 0
}

const (
	labelEnd = 1 << 63 // above all labels
	labelGap = 1 << 40 // free space below a new last text, and above a new first one
	runShare = 1 << 12 // of a gap: free space beside the latest new text
)

func newDictionary() *dictionary {
	return &dictionary{
		codes: map[string]uint32{}, texts: []string{""}, labels: []uint64{0}, uses: []int32{0},
		order: sorted.NewSet(ordered.before),
	}
}

func (d *dictionary) empty() bool { return len(d.codes) == 0 }

// use returns the number of a text and counts one more use.
func (d *dictionary) use(text string) uint32 {
	code, ok := d.codes[text]
	if !ok {
		code = d.number(text)
		d.codes[text] = code
		d.insert(ordered{search.OrderText(text), text, code})
	}
	d.uses[code]++
	return code
}

func (d *dictionary) number(text string) uint32 {
	if n := len(d.free); n > 0 {
		code := d.free[n-1]
		d.free = d.free[:n-1]
		d.texts[code] = text
		return code
	}
	d.texts = append(d.texts, text)
	d.labels = append(d.labels, 0)
	d.uses = append(d.uses, 0)
	return uint32(len(d.texts) - 1)
}

// release decrements the uses of a text.
func (d *dictionary) release(code uint32) {
	if d.uses[code]--; d.uses[code] > 0 {
		return
	}
	text := d.texts[code]
	delete(d.codes, text)
	d.order.Delete(ordered{search.OrderText(text), text, code})
	d.texts[code] = ""
	d.free = append(d.free, code)
}

// insert gives a new text a label between those of its neighbours, and redistributes all labels if there is no gap left. Texts often come in
// their order or against it, such as names with a number or a time. Then each new one has the one before as its neighbour, and a label close
// to it, because with halves a gap would be used up after some forty texts.
func (d *dictionary) insert(o ordered) {
	d.order.Set(o)
	below, above := uint64(0), uint64(labelEnd)
	var lower, upper uint32
	d.order.Descend(o, func(x ordered) bool {
		if x.code != o.code {
			lower, below = x.code, d.labels[x.code]
		}
		return x.code == o.code
	})
	d.order.Ascend(o, func(x ordered) bool {
		if x.code != o.code {
			upper, above = x.code, d.labels[x.code]
		}
		return x.code == o.code
	})
	latest := d.last
	d.last = o.code
	gap := above - below
	half := gap / 2
	switch {
	case half == 0:
		d.relabel()
		return
	case below == 0 && above == labelEnd:
	case above == labelEnd:
		half = min(half, labelGap)
	case below == 0:
		half = gap - min(half, labelGap)
	case gap < runShare:
	case lower == latest:
		half = gap / runShare
	case upper == latest:
		half = gap - gap/runShare
	}
	d.labels[o.code] = below + half
}

func (d *dictionary) relabel() {
	d.relabelled++
	step := uint64(labelEnd) / uint64(d.order.Len()+1)
	label := uint64(0)
	d.order.Scan(func(x ordered) bool {
		label += step
		d.labels[x.code] = label
		return true
	})
}

// seek returns the label of the first text whose order is at or after the given one, which search.OrderText made.
func (d *dictionary) seek(order string) (label uint64, exact, ok bool) {
	d.order.Ascend(ordered{order: order}, func(x ordered) bool {
		label, exact, ok = d.labels[x.code], x.order == order, true
		return false
	})
	return label, exact, ok
}
