package main

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/spelling"
)

// didYouMean gives the end of a message about an unknown name: the known name that is most like it, written as write
// does, or nothing when none is near.
func didYouMean(unknown string, known []string, write func(string) string) string {
	best, ok := spelling.Nearest(unknown, known)
	if !ok {
		return "; `muster config` lists all"
	}
	return fmt.Sprintf("; did you mean %s?", write(best))
}
