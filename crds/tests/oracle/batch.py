#!/usr/bin/env python3
"""Answers many questions of one kind with `robfig_ref.wall_next`.

Input, one question a line: expression, time zone, start, limit (both seconds
since the epoch), separated by tabs.
Output, one answer a line, two columns separated by a tab:
  1. `error`, `never`, the next instant in seconds, or `later` if it lies
     beyond the limit (the search is brute force, so it needs an end);
  2. the zone's offsets from the start to the limit as the system's tz data has
     them: `offset;instant:offset;...`, or `unknown`.  The caller leaves out
     questions where its own tz data differs.
"""
import sys
from datetime import timedelta

import robfig_ref
from robfig_ref import EPOCH, CronError, load_zone, parse_k8s, wall_next

DAY = 86400


class Later(Exception):
    pass


class LimitedLocal(robfig_ref.Local):
    """Local time that ends the search at the limit."""
    __slots__ = ()
    limit = 0

    def __init__(self, zone, second):
        if second > LimitedLocal.limit:
            raise Later
        super().__init__(zone, second)


def offsets(zone, start, limit):
    at, now = start, robfig_ref._offset(zone, start)
    found = [str(now)]
    while at < limit:
        high = min(at + DAY, limit)
        if robfig_ref._offset(zone, high) != now:
            low = at
            while high - low > 1:
                middle = (low + high) // 2
                if robfig_ref._offset(zone, middle) == now:
                    low = middle
                else:
                    high = middle
            now = robfig_ref._offset(zone, high)
            found.append("%d:%d" % (high, now))
        at = high
    return ";".join(found)


def answer(expression, zone_name, start, limit):
    LimitedLocal.limit = limit
    try:
        spec, zone = parse_k8s(expression, zone_name)
    except CronError:
        return "error"
    try:
        found = wall_next(spec, EPOCH + timedelta(seconds=start), zone)
    except Later:
        return "later"
    return "never" if found is None else str(int((found - EPOCH).total_seconds()))


def main():
    robfig_ref.Local = LimitedLocal
    for line in sys.stdin:
        expression, zone_name, start, limit = line.rstrip("\n").split("\t")
        start, limit = int(start), int(limit)
        try:
            zone_offsets = offsets(load_zone(zone_name), start, limit)
        except CronError:
            zone_offsets = "unknown"
        print(answer(expression, zone_name, start, limit), zone_offsets, sep="\t")


if __name__ == "__main__":
    main()
