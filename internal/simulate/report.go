package simulate

import (
	"math"
	"slices"
	"time"
)

// Report is the result of a simulation. Waits and times are in seconds.
type Report struct {
	RuleSet  string  `json:"ruleSet"`
	Length   float64 `json:"length"` // from the start to the last arrival
	Timeout  float64 `json:"requestTimeout"`
	Seed     uint64  `json:"seed"`
	Tickets  Count   `json:"tickets"`
	Players  Count   `json:"players"`
	Matches  Matches `json:"matches"`
	Wait     Spread  `json:"wait"` // of the tickets that were matched
	OverTime []Span  `json:"overTime"`

	Numbers []NumberQuality `json:"numbers,omitempty"` // for each number that the rule set declares
	Words   []WordQuality   `json:"words,omitempty"`   // for each string
	Latency *LatencyQuality `json:"latency,omitempty"` // if players reported any

	Lacks   []Lack      `json:"lacks,omitempty"` // of the tickets that could never be matched, by what was first missing
	Levels  []LevelUse  `json:"levels"`          // how often each expansion was needed
	Rules   []RuleUse   `json:"rules,omitempty"`
	Matcher MatcherWork `json:"matcher"`
}

// Count counts tickets or players by their outcome.
type Count struct {
	Arrived     int `json:"arrived"`
	Matched     int `json:"matched"`
	TimedOut    int `json:"timedOut"`
	Left        int `json:"left,omitempty"` // their players gave up before a match
	Unmatchable int `json:"unmatchable"`    // of those that timed out: a value that the rule set needs is missing, or the party is larger than any team
}

// Lack is a reason why tickets could never be matched.
type Lack struct {
	Attribute string `json:"attribute,omitempty"` // attribute without a default for which a player had no value; empty: the party was larger than any team
	Tickets   int    `json:"tickets"`
}

// Matches counts the matches and describes how full they are.
type Matches struct {
	Count   int     `json:"count"`
	Full    int     `json:"full"` // with no slot left at the time
	Players float64 `json:"meanPlayers"`
}

// Spread summarizes the distribution of many numbers.
type Spread struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P75   float64 `json:"p75"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// Span is a part of the time, with the tickets that arrived in it.
type Span struct {
	From     float64 `json:"from"`
	To       float64 `json:"to"`
	Arrived  int     `json:"arrived"`
	Matched  int     `json:"matched"`
	TimedOut int     `json:"timedOut"`
	Left     int     `json:"left,omitempty"`
	Wait     Spread  `json:"wait"`
}

// NumberQuality describes how similar the players of a match are in a number.
type NumberQuality struct {
	Name   string `json:"name"`
	Within Spread `json:"within"` // the largest minus the smallest value in a match
	Teams  Spread `json:"teams"`  // the largest minus the smallest average of its teams
}

// WordQuality is the number of matches in which all players have the same value.
type WordQuality struct {
	Name string `json:"name"`
	Same int    `json:"same"`
}

// LatencyQuality has the latencies to the best region of each match, in milliseconds.
type LatencyQuality struct {
	Worst         Spread `json:"worst"` // of the player who is farthest from it
	Mean          Spread `json:"mean"`  // of the players of a match
	WithoutRegion int    `json:"withoutRegion"`
}

// LevelUse is how many matches were made at a level of the rule set's expansions.
type LevelUse struct {
	Wait    int32 `json:"waitSeconds"`
	Matches int   `json:"matches"`
	Tickets int   `json:"tickets"`
}

// RuleUse is how often a rule was evaluated with the tickets that were matched.
type RuleUse struct {
	Name   string `json:"name"`
	Passed uint64 `json:"passed"`
	Failed uint64 `json:"failed"`
}

// MatcherWork counts the work of the matcher.
type MatcherWork struct {
	Passes      uint64 `json:"passes"`
	Searches    uint64 `json:"searches"`
	Evaluations uint64 `json:"evaluations"`
	Exhausted   uint64 `json:"searchesOutOfBudget"`
	CutShort    uint64 `json:"passesCutShort"`
}

// SpreadOf summarizes values, which it sorts in place.
func SpreadOf(values []float64) Spread {
	s := Spread{Count: len(values)}
	if len(values) == 0 {
		return s
	}
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	at := func(share float64) float64 {
		return round(values[max(0, int(math.Ceil(share*float64(len(values))))-1)])
	}
	s.Mean = round(sum / float64(len(values)))
	s.P50, s.P75, s.P90, s.P95, s.P99, s.Max = at(0.5), at(0.75), at(0.9), at(0.95), at(0.99), at(1)
	return s
}

// round keeps three decimal places: more would be noise.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// spans divides a time into at most two dozen parts, so that the report stays readable.
func spans(length time.Duration) (each time.Duration, n int) {
	const most = 24
	for _, step := range []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
		24 * time.Hour, 7 * 24 * time.Hour,
	} {
		each = step
		if n = int(length/step) + 1; n <= most {
			return each, n
		}
	}
	each = length/most + 1
	return each, int(length/each) + 1
}
