// Package penalties asks the studio's backend about each new penalty. The core cannot wait for the answer in the commit that gives the
// penalty. So the computed penalty holds until an answer comes, and stays if none does.
package penalties
