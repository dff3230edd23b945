package attention

import "github.com/musterhq/muster/internal/plural"

// service is what concerns all changes and records.
func service(short error, damage func() []string, logTrouble func() (lost uint64, why error)) (all []Item) {
	if short != nil {
		all = append(all, Item{What: "The service refuses changes: " + short.Error() + ".", Next: "Free space on the disk of the data directory; the service continues by itself."})
	}
	if damage != nil {
		for _, place := range damage() {
			all = append(all, Item{What: "The archive is damaged at " + place + ": records there cannot be read.", Next: "muster archive --help explains how to repair it."})
		}
	}
	if logTrouble != nil {
		if lost, why := logTrouble(); why != nil {
			all = append(all, Item{
				What: "The log of this node cannot be written: " + why.Error() + ". " + plural.Of(int(lost), "line was", "lines were") + " lost since the start.",
				Next: "Check where standard error of muster serve goes: to a full disk, or to a program that has ended or hangs. The service continues without it, and muster support-bundle has the latest lines.",
			})
		}
	}
	return all
}
