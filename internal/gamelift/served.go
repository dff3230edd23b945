package gamelift

import "slices"

// Served returns the sorted names of the implemented operations; each of them needs a test with real clients.
func Served() []string {
	var names []string
	for i := range operations {
		if operations[i].standing == works {
			names = append(names, operations[i].name)
		}
	}
	slices.Sort(names)
	return names
}
