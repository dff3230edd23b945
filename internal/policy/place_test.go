package policy

import (
	"errors"
	"testing"
)

func TestPlacesOfMistakes(t *testing.T) {
	const statement = `"Effect": "Allow", "Action": "gamelift:*", "Resource": "*"`
	for document, want := range map[string][2]int{
		"": {1, 1},
		"{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [{" + statement + "}, {\"Effect\": \"Perhaps\", \"Action\": \"*\", \"Resource\": \"*\"}]\n}": {3, 90},
		"{\n\t\"Version\": \"2012-10-17\",\n\t\"Statement\": [\n\t\t{" + statement + ", \"Principal\": \"é\"}\n\t]}":                                      {4, 77},
		"{\"Version\": \"2012-10-17\",\n \"Statement\": {\"Effect\": \"Allow\"}}":                                                                         {2, 15},
		"{\"Version\": \"2012-10-17\",\n \"Statement\": [{" + statement + "}]\n} x":                                                                       {3, 2},
		"{\"Version\": \"2012-10-17\",\n \"Statement\": [{,}]}":                                                                                           {2, 17},
	} {
		_, err := Parse(document)
		mistake, ok := errors.AsType[*Mistake](err)
		if !ok {
			t.Fatalf("%s\n%v, want a mistake", document, err)
		}
		if line, column := mistake.Place(document); line != want[0] || column != want[1] {
			t.Errorf("%s\n%s at %d:%d, want %d:%d", document, mistake, line, column, want[0], want[1])
		}
	}
}
