package attention

// service is what concerns all changes and records.
func service(short error, damage func() []string) (all []Item) {
	if short != nil {
		all = append(all, Item{What: "The service refuses changes: " + short.Error() + ".", Next: "Make room on the disk of the data directory; the service goes on by itself."})
	}
	if damage != nil {
		for _, place := range damage() {
			all = append(all, Item{What: "The archive is damaged at " + place + ": records there cannot be read.", Next: "muster archive --help says how to repair it."})
		}
	}
	return all
}
