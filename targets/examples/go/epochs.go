package main

import (
	"encoding/json"
	"errors"
)

// LeaderEpochs knows where each leader epoch began in a log: pairs [epoch, start offset] that rise in both.
type LeaderEpochs struct {
	entries [][2]int64
}

func (l *LeaderEpochs) Operations() []string {
	return []string{"assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "clearAndFlush",
		"endOffsetFor", "epochForOffset"}
}

// Init begins a new history. This type has no use for the configuration.
func (l *LeaderEpochs) Init(configuration json.RawMessage) {
	l.entries = [][2]int64{}
}

// Observe is what the judge compares after a call. `file` and `scheduled` are left out: nothing is written here.
func (l *LeaderEpochs) Observe() any {
	if len(l.entries) == 0 {
		return object{"entries": l.entries, "latestEpoch": nil}
	}
	return object{"entries": l.entries, "latestEpoch": l.latest()[0]}
}

// Apply takes one call. The names of the arguments are compared without regard to case, as Go's decoder does.
func (l *LeaderEpochs) Apply(op string, arguments json.RawMessage) (any, error) {
	var a struct{ Epoch, StartOffset, EndOffset, RequestedEpoch, LogEndOffset, Offset int64 }
	if err := json.Unmarshal(arguments, &a); err != nil {
		return nil, errUnknown
	}
	switch op {
	case "assign":
		return nil, l.assign(a.Epoch, a.StartOffset)
	case "truncateFromEndAsyncFlush":
		l.truncateFromEnd(a.EndOffset)
	case "truncateFromStartAsyncFlush":
		l.truncateFromStart(a.StartOffset)
	case "clearAndFlush":
		l.entries = l.entries[:0]
	case "endOffsetFor":
		epoch, endOffset := l.endOffsetFor(a.RequestedEpoch, a.LogEndOffset)
		return object{"epoch": epoch, "endOffset": endOffset}, nil
	case "epochForOffset":
		return l.epochForOffset(a.Offset), nil
	default:
		return nil, errUnknown
	}
	return nil, nil
}

func (l *LeaderEpochs) latest() [2]int64 {
	return l.entries[len(l.entries)-1]
}

func (l *LeaderEpochs) assign(epoch, startOffset int64) error {
	if epoch < 0 || startOffset < 0 {
		return errors.New("negative")
	}
	if len(l.entries) > 0 && l.latest()[0] == epoch && l.latest()[1] <= startOffset {
		return nil
	}
	for len(l.entries) > 0 && replaces(epoch, startOffset, l.latest()) {
		l.entries = l.entries[:len(l.entries)-1]
	}
	l.entries = append(l.entries, [2]int64{epoch, startOffset})
	return nil
}

func (l *LeaderEpochs) truncateFromEnd(endOffset int64) {
	for endOffset >= 0 && len(l.entries) > 0 && l.latest()[1] >= endOffset {
		l.entries = l.entries[:len(l.entries)-1]
	}
}

func (l *LeaderEpochs) truncateFromStart(startOffset int64) {
	below := 0
	for below < len(l.entries) && l.entries[below][1] <= startOffset {
		below++
	}
	if below > 0 {
		l.entries = l.entries[below-1:]
		l.entries[0][1] = startOffset
	}
}

func (l *LeaderEpochs) endOffsetFor(requested, logEndOffset int64) (epoch, endOffset int64) {
	if requested == -1 || len(l.entries) == 0 || requested > l.latest()[0] {
		return -1, -1
	}
	if requested == l.latest()[0] {
		return requested, logEndOffset
	}
	known, next := requested, 0
	for l.entries[next][0] <= requested {
		known = l.entries[next][0]
		next++
	}
	return known, l.entries[next][1]
}

func (l *LeaderEpochs) epochForOffset(offset int64) *int64 {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i][1] <= offset {
			return &l.entries[i][0]
		}
	}
	return nil
}
