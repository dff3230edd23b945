// Package penalties asks the studio's backend about each new penalty. The core cannot wait for the answer in the commit that gives the
// penalty. So the penalty holds as it was computed until an answer comes, and remains if none does.
package penalties
