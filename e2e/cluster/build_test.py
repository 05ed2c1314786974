#!/usr/bin/env python3
"""Checks what a build says is left. Run by `make unit`."""

from __future__ import annotations

import unittest

from build import TOOLS, left


class Left(unittest.TestCase):
    def test_all_that_is_not_built_counts_as_long_as_it_took_last_time(self) -> None:
        self.assertEqual(left("etcd", ["kwok"], {"etcd": 30, "kwok": 10}), "about 40 s left")

    def test_a_first_build_counts_as_long_as_on_two_cores(self) -> None:
        self.assertEqual(left("kwok", [], {}), f"about {TOOLS['kwok'].seconds} s left")

    def test_the_time_that_a_build_has_taken_is_not_left(self) -> None:
        self.assertEqual(left("etcd", ["kwok"], {"etcd": 30, "kwok": 10}, spent=20), "about 20 s left")

    def test_a_build_that_takes_longer_than_expected_takes_nothing_from_the_later_ones(self) -> None:
        self.assertEqual(left("etcd", ["kwok"], {"etcd": 30, "kwok": 10}, spent=60), "about 10 s left")

    def test_a_minute_and_a_half_or_more_is_told_in_minutes(self) -> None:
        self.assertEqual(left("etcd", ["kwok"], {"etcd": 30, "kwok": 59}), "about 89 s left")
        self.assertEqual(left("etcd", ["kwok"], {"etcd": 120, "kwok": 40}), "about 3 min left")


if __name__ == "__main__":
    unittest.main()
