package main

import (
	"fmt"

	"github.com/musterhq/muster/internal/domain/spelling"
)

// didYouMean returns the end of a message about an unknown name: the most similar known name, formatted by write,
// or a hint to `muster config` if none is similar.
func didYouMean(unknown string, known []string, write func(string) string) string {
	best, ok := spelling.Nearest(unknown, known)
	if !ok {
		return "; `muster config` lists all"
	}
	return fmt.Sprintf("; did you mean %s?", write(best))
}
