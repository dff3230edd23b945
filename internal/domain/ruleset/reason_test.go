package ruleset

import "testing"

func TestReason(t *testing.T) {
	for rule, want := range map[string]string{
		comparison(skills, `"referenceValue": 11, "operation": ">="`):                                                       "10 >= 11 is false",
		comparison(skills, `"referenceValue": 10, "operation": ">="`):                                                       "",
		comparison(clans, `"referenceValue": "K", "operation": "="`):                                                        `"L" = "K" is false`,
		comparison(clans, `"operation": "="`):                                                                               "the values are not all equal",
		comparison(clans, `"operation": "!="`):                                                                              "a value occurs twice",
		distance("avg(teams[*].players.attributes[skill])", "avg("+skills+")", `"maxDistance": 10`):                         "from 15 to 30 it is 15, want at most 10",
		distance("max("+skills+")", "min("+skills+")", `"minDistance": 50, "maxDistance": 60`):                              "from 50 to 10 it is 40, want 50 to 60",
		distance("max("+skills+")", "min("+skills+")", `"minDistance": 50`):                                                 "from 50 to 10 it is 40, want at least 50",
		collection(modes, `"operation": "intersection", "minCount": 2`):                                                     "want at least 2 strings that are in all lists",
		collection(modes, `"operation": "contains", "referenceValue": "koth", "maxCount": 4`):                               `want at most 4 that contain "koth"`,
		collection(modes, `"operation": "reference_intersection_count", "referenceValue": "koth", "maxCount": 0`):           "want at most 0 strings of the reference in each list",
		rule(`"type": "batchDistance", "batchAttribute": "skill", "maxDistance": 39`):                                       "the tickets have 10 to 50, want at most 39 between them",
		rule(`"type": "batchDistance", "batchAttribute": "clan"`):                                                           "not all players have the same",
		rule(`"type": "latency", "maxLatency": 30`):                                                                         "no region was reported by all players with at most 30 ms",
		rule(`"type": "latency", "maxDistance": 30`):                                                                        "no region was reported by all players",
		rule(`"type": "absoluteSort", "sortDirection": "ascending", "sortAttribute": "skill"`):                              "",
		comparison("max(teams[red].players.attributes[skill])", `"referenceValue": 1, "operation": "<"`):                    "20 < 1 is false",
		comparison(clans, `"operation": "="`) + `, {"name": "C", "type": "compound", "statement": "or(R, and(R, not(R)))"}`: "R fails",
	} {
		set := exampleSet(t, rule)
		if got := set.Level(0).Reason(len(set.Rules)-1, exampleCandidate(t, set)); got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
	set := exampleSet(t, comparison("max(teams[red].players.attributes[skill])", `"referenceValue": 1, "operation": "<"`))
	c := exampleCandidate(t, set)
	c.Teams[0] = nil
	if got := set.Level(0).Reason(0, c); got != undefinedReason {
		t.Errorf("got %q, want %q", got, undefinedReason)
	}
}
